#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Everything that has to be seen on real hardware, in under nine minutes, from the bundle alone:
#
#   run.sh BUNDLE.tar.xz OUT [--software] [SECTION...]
#
# OUT gets summary.txt, a JSON file for each section and log.txt. --software rehearses it on the software GPU.
# Exit status: the number of sections that failed.
set -eu
bundle=$(realpath "$1") out=$(realpath "$2")
shift 2
mkdir -p "$out"
place=$(mktemp -d /tmp/diapause-hardware-XXXXXX)
tar -xJf "$bundle" -C "$place" --strip-components=1
sh "$place/install.sh" >"$out/log.txt" 2>&1 || { cat "$out/log.txt"; exit 99; }

export DIAPAUSE_BIN="$place/bin" DIAPAUSE_WORKLOADS="$place/tests/workloads" DIAPAUSE_NATIVE_TESTS="$place/tests/native"
folders=
for name in containerd-2.4 runc-1.5 criu busybox; do
	folders=$folders${folders:+:}$place/components/$name/bin
done
export DIAPAUSE_TOOLS_CURRENT="$folders" PYTHONPATH="$place/tests/site:$place/tests" PYTHONDONTWRITEBYTECODE=1
unset LD_LIBRARY_PATH
cd "$place/tests"
status=0
"$place/bin/python3" -m integration.hardware --out "$out" "$@" || status=$?
cd / && rm -rf "$place"
exit $status
