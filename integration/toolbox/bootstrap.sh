#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes build/venv: a Python environment with this tree installed in it.
#
#   bootstrap.sh        what the demo needs, and a build
#   bootstrap.sh dev    that, and the tools of `make test`
#
# Installs Debian's Python packages where they are missing. The environment lies in the cache
# ($DIAPAUSE_CACHE, default ~/.cache/diapause), one for each state of what pyproject.toml asks for, of
# Python and of this folder; done again it costs a few milliseconds.
set -eu

kind=${1:-demo}
root=$(cd "$(dirname "$0")/../.." && pwd -P)
cache=${DIAPAUSE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/diapause}
cd "$root"

say() { printf '%s\n' "$*" >&2; }

# run WHAT COMMAND…: one line of progress with the time it took; the output into a log, shown on failure
run() {
	what=$1
	shift
	[ ! -t 2 ] || printf '  %s …' "$what" >&2
	started=$(date +%s)
	if "$@" >>"$log" 2>&1 </dev/null; then
		[ ! -t 2 ] || printf '\r\033[K' >&2
		say "  $what: $(($(date +%s) - started)) s"
	else
		status=$?
		[ ! -t 2 ] || say ""
		say "bootstrap: $what failed with status $status; the last lines of $log:"
		tail -n 8 "$log" | sed 's/^/    /' >&2
		exit 1
	fi
}

apt_install() {
	[ "$(id -u)" = 0 ] || { say "bootstrap: $* is missing; install it as root: apt-get install $*"; exit 1; }
	DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@" ||
		{ apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "$@"; }
}

requirements() {
	python3 -I - "$kind" <<'END'
import sys
import tomllib

with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)
print(*project["build-system"]["requires"], *project["project"]["dependencies"], sep="\n")
if sys.argv[1] == "dev":
    print(*project["project"]["optional-dependencies"]["dev"], sep="\n")
END
}

mkdir -p "$cache/log" "$cache/venv" build
log=$cache/log/bootstrap.log
python=$(command -v python3 && python3 -IS -c 'import sys; print(sys.version)') || python=
key=$({ sed '/^\[tool\./,$d' pyproject.toml && cat hatch_build.py && echo "$root $python"; } | sha256sum | cut -c 1-16)
venv=$cache/venv/$key

# build/ may be gone while the environment in the cache is not
if [ -e "$venv/ready-$kind" ] && [ -n "$python" ] && [ -e build/editable/diapause/runtime ]; then
	[ "$(readlink build/venv)" = "$venv" ] || ln -sfn "$venv" build/venv
	exit 0
fi

exec 9>"$cache/venv/lock"
flock -n 9 || { say "  another process prepares an environment, waiting"; flock 9; }
: >"$log"

if ! python3 -I -c 'import ensurepip, venv' 2>/dev/null; then
	command -v apt-get >/dev/null || { say "bootstrap: python3 with venv is missing, and this is no Debian: install it"; exit 1; }
	run "Python (apt-get install python3 python3-venv)" apt_install python3 python3-venv
	exec "$0" "$kind" 9>&-  # the key depends on Python
fi
python3 -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
	{ say "bootstrap: $(command -v python3) is older than 3.11; put a newer one first in PATH"; exit 1; }

for old in "$cache"/venv/*/; do # those of folders that are gone
	[ ! -e "$old/folder" ] || [ -d "$(cat "$old/folder")" ] || rm -rf "$old"
done
if [ ! -e "$venv/folder" ]; then
	rm -rf "$venv"
	run "Python environment" python3 -m venv "$venv"
	echo "$root" >"$venv/folder"
fi
export PIP_DISABLE_PIP_VERSION_CHECK=1
requirements >"$venv/requirements-$kind"
run "Python packages and the C compiler zig" "$venv/bin/pip" install -r "$venv/requirements-$kind"
run "Diapause, with its C parts" "$venv/bin/pip" install --no-deps --no-build-isolation --editable .
touch "$venv/ready-$kind" "$venv/ready-demo"
ln -sfn "$venv" build/venv
