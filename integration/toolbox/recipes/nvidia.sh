# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# NVIDIA's container toolkit: the programs that put GPUs into containers where engines do not do it themselves.
# shellcheck source=recipes/golang.sh
. "$RECIPES/recipes/golang.sh"

# NVML's binding leaves its symbols undefined until they are loaded, which zig's linker refuses; so this one takes
# the machine's C compiler.
command -v cc >/dev/null || { echo "a C compiler (cc) is needed" >&2 && exit 1; }

module=github.com/NVIDIA/nvidia-container-toolkit/cmd
for program in nvidia-ctk nvidia-container-runtime nvidia-container-runtime-hook nvidia-cdi-hook; do
	CGO_ENABLED=1 CC=cc go install -ldflags "-s -w" "$module/$program@v$VERSION"
done
