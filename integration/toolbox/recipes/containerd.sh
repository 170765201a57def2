# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# Static programs: they run on any distribution, so the bundle can carry them.
# shellcheck source=recipes/golang.sh
. "$RECIPES/recipes/golang.sh"

module=github.com/containerd/containerd/v2
stamp="-s -w -X $module/version.Version=v$VERSION"
CGO_ENABLED=0 go install -ldflags "$stamp" "$module/cmd/containerd@v$VERSION" \
	"$module/cmd/containerd-shim-runc-v2@v$VERSION" "$module/cmd/ctr@v$VERSION"
