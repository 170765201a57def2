# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# containerd's client tests as one program, from its module. The image they pull comes from a registry on
# loopback (integration/conformance/registry.py): theirs lies on a public one.
# shellcheck source=recipes/golang.sh
. "$RECIPES/recipes/golang.sh"

module=github.com/containerd/containerd/v2
source=$(go mod download -json "$module@v$VERSION" | sed -n 's/.*"Dir": "\(.*\)",*$/\1/p')
[ -d containerd ] || { cp -r "$source" containerd.part && chmod -R u+w containerd.part && mv containerd.part containerd; }
sed -i 's|ghcr.io/containerd/busybox:1.36|localhost:58431/busybox:1.36|' containerd/integration/images/image_list.go
mkdir -p "$OUT/bin"
(cd containerd && CGO_ENABLED=0 go test -c -tags no_btrfs -o "$OUT/bin/client.test" ./integration/client)
