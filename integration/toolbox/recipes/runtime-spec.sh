# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# The module as Go's module cache has it: $OUT/github.com/opencontainers/runtime-spec@v…/schema.
# shellcheck source=recipes/golang.sh
. "$RECIPES/recipes/golang.sh"

GOMODCACHE=$OUT go mod download "github.com/opencontainers/runtime-spec@v$VERSION"
