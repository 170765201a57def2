# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# dockerd and docker, static. Their modules have no go.mod but a file of the same form under another name: a
# module of ours takes the versions of everything they need from it.
# shellcheck source=recipes/golang.sh
. "$RECIPES/recipes/golang.sh"

build() { # module, program, variable that holds the version
	source=$(go mod download -json "$1@v$VERSION+incompatible" | sed -n 's/.*"Dir": "\(.*\)",*$/\1/p')
	mkdir -p "$2"
	{
		echo "module toolbox"
		sed -n '/^go /,$p' "$source/vendor.mod"
		echo "require $1 v$VERSION+incompatible"
	} >"$2/go.mod"
	cp "$source/vendor.sum" "$2/go.sum"
	chmod u+w "$2/go.sum"
	(cd "$2" && CGO_ENABLED=0 go build -mod=mod -ldflags "-s -w -X $1/$3=$VERSION" -o "$OUT/bin/$2" "$1/cmd/$2")
}

build github.com/docker/docker dockerd dockerversion.Version
build github.com/docker/cli docker cli/version.Version
