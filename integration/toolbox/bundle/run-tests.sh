#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The integration tests of the bundle, with the programs of the bundle. Arguments are pytest's.
set -eu
prefix=$(cd "$(dirname "$0")" && pwd -P)
[ -x "$prefix/bin/diapause" ] || { echo "run-tests: run install.sh first" >&2; exit 1; }
cd "$prefix/tests"
folders=
for name in containerd-2.4 runc-1.5 criu busybox; do
	folders=$folders${folders:+:}$prefix/components/$name/bin
done
export DIAPAUSE_BIN="$prefix/bin" DIAPAUSE_WORKLOADS="$prefix/tests/workloads"
export DIAPAUSE_TOOLS_CURRENT="$folders" PYTHONPATH="$prefix/tests/site:$prefix/tests" PATH="$folders:$PATH"
exec "$prefix/bin/python3" -m pytest --import-mode=importlib -p no:cacheprovider -ra --timeout 600 \
	"${@:-integration/tests}"
