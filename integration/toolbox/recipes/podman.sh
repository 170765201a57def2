# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# podman and conmon of this Debian, unpacked with the libraries that a small machine lacks; nothing is installed.

packages="podman conmon libgpgme11 libassuan0 libgpg-error0 libsubid4 libyajl2"
mkdir -p debs
# shellcheck disable=SC2086
(cd debs && { apt-get -q download $packages || { apt-get -q update && apt-get -q download $packages; }; })
for deb in debs/*.deb; do dpkg-deb --extract "$deb" "$OUT/prefix"; done

mkdir -p "$OUT/bin"
# shellcheck disable=SC2016
libraries=$(cd "$OUT" && find prefix -name '*.so.*' -exec dirname {} + | sort -u | sed 's|^|$here/|' | paste -sd :)
for program in podman conmon; do
	cat >"$OUT/bin/$program" <<-END
		#!/bin/sh
		here=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")
		LD_LIBRARY_PATH=$libraries exec "\$here/prefix/usr/bin/$program" "\$@"
	END
	chmod +x "$OUT/bin/$program"
done
