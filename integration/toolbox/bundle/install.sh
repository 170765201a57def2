#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes this folder, or a copy of it, a working installation of Diapause. Needs Python from 3.11 on, no network.
#
#   sh install.sh [PREFIX]     default: where this file lies
#
# PYTHON names an interpreter if the right one is not in PATH. Run it again after moving the folder.
set -eu

here=$(cd "$(dirname "$0")" && pwd -P)
mkdir -p "${1:-$here}"
prefix=$(cd "${1:-$here}" && pwd -P)
if [ ! -d "$prefix/site/diapause" ] && [ -n "$(ls -A "$prefix")" ]; then
	echo "install: $prefix is not empty and no installation of this; choose a folder of its own" >&2
	exit 1
fi

for python in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 ''; do
	[ -n "$python" ] || { echo "install: no Python from 3.11 on in PATH; set PYTHON" >&2; exit 1; }
	found=$(command -v "$python") || continue
	"$found" -IS -c 'import sys; sys.exit(not (3, 11) <= sys.version_info)' 2>/dev/null && break
done
version=$("$found" -IS -c 'import sys; print("%d.%d" % sys.version_info[:2])')
found=$("$found" -IS -c 'import os, sys; print(os.path.realpath(sys._base_executable))')

if [ "$prefix" != "$here" ]; then
	rm -rf "$prefix/site" "$prefix/components" "$prefix/tests" # of an older version
	cp -a "$here/." "$prefix"
fi

# An environment as `venv` makes it, by hand: Debian keeps parts of venv in a package of its own.
rm -rf "${prefix:?}/lib"
mkdir -p "$prefix/lib/python$version"
ln -s ../../site "$prefix/lib/python$version/site-packages"
ln -sfn "$found" "$prefix/bin/python3"
cat >"$prefix/pyvenv.cfg" <<END
home = ${found%/*}
include-system-site-packages = false
version = $version
END

launcher() {
	cat >"$prefix/bin/$1" <<END
#!$prefix/bin/python3 -I
import sys
from $2 import main
sys.exit(main())
END
	chmod 755 "$prefix/bin/$1"
}
launcher diapause diapause.runtime.cli.main
launcher diapause-gpud diapause.runtime.gpud.main
launcher diapause-oci diapause.runtime.oci.main

"$prefix/bin/python3" -I -m compileall -q "$prefix/site" || true # only to start faster
"$prefix/bin/diapause" --version
echo "Installed in $prefix; try $prefix/bin/diapause demo"
