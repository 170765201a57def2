# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# runc has C parts: zig compiles them, against libseccomp's headers and archive from the development
# package, which is unpacked and not installed. Without seccomp, nerdctl and Docker refuse this runc.
# shellcheck source=recipes/golang.sh
. "$RECIPES/recipes/golang.sh"

[ -e seccomp/usr/include/seccomp.h ] || {
	apt-get -q download libseccomp-dev || { apt-get -q update && apt-get -q download libseccomp-dev; }
	dpkg-deb --extract libseccomp-dev_*.deb seccomp
}
archive=$(find "$PWD/seccomp" -name libseccomp.a)
seccomp_version=$(sed -n 's/^Version: *//p' "$(find "$PWD/seccomp" -name libseccomp.pc)")

# The Go binding lists these processors in a switch; where libseccomp is too old to know them it falls back
# to one value for all, which clang refuses. The values are the kernel's AUDIT_ARCH_*.
include=$PWD/seccomp/usr/include
flags=
for arch in M68K=0x4 SH=0x4000002a SHEB=0x2a; do
	grep -q "SCMP_ARCH_${arch%=*}" "$include/seccomp.h" || flags="$flags -DSCMP_ARCH_$arch"
done

# By the environment: Go remembers what pkg-config said even where that folder is gone.
export CGO_CFLAGS="-O2 -I$include$flags" CGO_LDFLAGS="$archive" PKG_CONFIG="$PWD/pkg-config"
printf '#!/bin/sh\ncase "$*" in *--modversion*) echo %s ;; esac\n' "$seccomp_version" >pkg-config
chmod +x pkg-config

machine=$(uname -m)
export CC="$PYTHON -m ziglang cc -target $machine-linux-gnu.2.17"
CGO_ENABLED=1 go install -tags seccomp -ldflags "-s -w -X main.version=$VERSION" \
	"github.com/opencontainers/runc@v$VERSION"
