# SPDX-License-Identifier: Apache-2.0
# Every target shows progress, can be run again, and leaves nothing running.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help demo test lint unit native integration bench conformance soak bundle clean environment

VENV := build/venv/bin
BOOTSTRAP := sh integration/toolbox/bootstrap.sh
TOOLBOX := python3 integration/toolbox/toolbox.py
MACHINE := $(shell uname -m)
NATIVE := $(MAKE) -s -C native OUT=$(CURDIR)/build/editable/diapause/native O=$(CURDIR)/build/obj/$(MACHINE) \
	TARGET=$(MACHINE)-linux-gnu.2.17 ZIG="$(CURDIR)/$(VENV)/python -m ziglang"

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: ## checkpoint and restore of a GPU container, from a bare machine in one command (root)
	@$(BOOTSTRAP) demo
	@$(MAKE) commands
	@$(VENV)/diapause demo

test: ## lint, unit, native and integration tests; ends with "N passed, N failed" (root)
	@$(BOOTSTRAP) dev
	@$(TOOLBOX) get debian current nerdctl-2.3 docker-27 podman cuda-13.0 runtime-spec-1.3 >/dev/null
	@$(VENV)/python .ci/stages.py lint unit native integration

lint: environment ## formatting, lint, types, import directions, C and shell
	@$(VENV)/python .ci/lint.py

unit: environment commands ## tests that need no root, GPU or network
	@mkdir -p build/results
	@cuda=$$($(TOOLBOX) get cuda-13.0) && schemas=$$($(TOOLBOX) get runtime-spec-1.3) && GOMODCACHE=$$schemas \
	DIAPAUSE_CUDA_HEADERS=$$cuda/include DIAPAUSE_PTXAS=$$cuda/bin/ptxas \
		$(VENV)/pytest --junitxml=build/results/unit.xml tests

native: environment commands ## build the C parts and run their tests
	@$(NATIVE) tests
	@criu=$$($(TOOLBOX) get criu)/bin && \
	DIAPAUSE_CRIU_PATH=$$criu/criu PATH=$$criu:$$PATH $(VENV)/python .ci/native.py build/editable/diapause/native

integration: environment commands workloads ## real containerd, runc and CRIU, on the software GPU (root)
	@$(TOOLBOX) get debian current >/dev/null
	@mkdir -p build/results
	@$(VENV)/python -m pytest --junitxml=build/results/integration.xml integration/tests

bench: environment commands workloads ## ratios against plain runc, JSON and a table (root)
	@$(TOOLBOX) get debian current >/dev/null
	@$(VENV)/python -m integration.bench

conformance: environment commands workloads ## other projects' suites against diapause-runc (root, long)
	@$(VENV)/python -m integration.conformance

soak: environment commands workloads ## many rounds without growth (root, long)
	@$(VENV)/python -m integration.soak

bundle: environment commands workloads ## dist/: one archive for machines without package indices
	@$(NATIVE) tests
	@$(TOOLBOX) get containerd-2.4 runc-1.5 criu busybox >/dev/null
	@$(VENV)/python integration/toolbox/bundle.py

clean: ## remove build/ and dist/, not the cache
	rm -rf build dist

environment:
	@$(BOOTSTRAP) dev

.PHONY: commands workloads
commands: # bring the environment's C commands up to date
	@$(NATIVE)
	@install -C build/editable/diapause/native/bin/diapause-runc build/editable/diapause/native/bin/diapause-hook $(VENV)

workloads: commands # the programs that run in the containers of tests
	@$(NATIVE) WORKLOADS=$(CURDIR)/build/workloads workloads
