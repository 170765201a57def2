# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# nerdctl, static. Its module replaces one of its own test helpers by a local folder, so `go install` refuses it:
# a module of ours names it as a tool and replaces the helper by a stub.
# shellcheck source=recipes/golang.sh
. "$RECIPES/recipes/golang.sh"

module=github.com/containerd/nerdctl
mkdir -p build/tigron/tig
cd build || exit
cat >tigron/go.mod <<-END
	module $module/mod/tigron

	go 1.24
END
cat >tigron/tig/tig.go <<-END
	package tig

	import "testing"

	type T = testing.TB
END
cat >go.mod <<-END
	module toolbox

	go 1.24

	tool $module/v2/cmd/nerdctl

	require $module/v2 v$VERSION

	replace $module/mod/tigron => ./tigron
END
CGO_ENABLED=0 go build -mod=mod -ldflags "-s -w -X $module/v2/pkg/version.Version=v$VERSION" \
	-o "$OUT/bin/nerdctl" "$module/v2/cmd/nerdctl"
