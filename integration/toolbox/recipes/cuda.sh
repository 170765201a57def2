# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# The header and the assembler that tests compare with; nothing of it is linked or shipped.

"$PYTHON" -m pip download --quiet --no-deps --dest wheels \
	"nvidia-cuda-runtime==$VERSION.*" "nvidia-cuda-nvcc==$VERSION.*"
for wheel in wheels/*.whl; do
	"$PYTHON" -m zipfile -e "$wheel" unpacked
done
mkdir -p "$OUT/bin" "$OUT/include"
header=$(find unpacked -name cuda.h)
cp -R "${header%/*}/." "$OUT/include"
cp "$(find unpacked -path '*/bin/ptxas')" "$OUT/bin"
chmod +x "$OUT/bin/ptxas"
