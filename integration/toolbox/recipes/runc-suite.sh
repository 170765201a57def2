# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# runc's own integration tests, from its module, with the helper programs they run, and bats to run them.
# The image they unpack is made of busybox: theirs comes from a project site.
# shellcheck source=recipes/golang.sh
. "$RECIPES/recipes/golang.sh"

packages="bats gawk jq libjq1 libonig5 libsigsegv2 libmpfr6 libreadline8"
mkdir -p debs prefix
# shellcheck disable=SC2086
(cd debs && { apt-get -q download $packages || { apt-get -q update && apt-get -q download $packages; }; })
for deb in debs/*.deb; do dpkg-deb --extract "$deb" prefix; done

source=$(go mod download -json "github.com/opencontainers/runc@v$VERSION" | sed -n 's/.*"Dir": "\(.*\)",*$/\1/p')
rm -rf runc && cp -r "$source" runc && chmod -R u+w runc
mkdir -p runc/tests/cmd/_bin
for helper in runc/tests/cmd/*/; do
	(cd runc && CGO_ENABLED=0 go build -o tests/cmd/_bin/ "./tests/cmd/$(basename "$helper")") ||
		echo "$helper cannot be built without libseccomp: the tests that need it fail"
done

rm -rf "$OUT/suite" "$OUT/prefix" && mkdir -p "$OUT/bin"
cp -r runc/tests "$OUT/suite" && cp -r prefix "$OUT/prefix"
ln -sf ../prefix/usr/bin/bats "$OUT/bin/bats"
