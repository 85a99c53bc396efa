# Everything a user or developer runs. `make demo` and `make test` set themselves up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := .make
DATA := $(CURDIR)/.data
export PIP_DISABLE_PIP_VERSION_CHECK := 1
WORKERS ?= auto

.PHONY: help demo test test-quick test-oldest test-full check fmt lint types imports bench data tune-search bench-explain eval docs recording screenshots lock node servers elysia clients bfcl weights system clean

help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

demo: $(STAMPS)/runtime ## Set up, and show eight things through a real MCP client (ARGS=--all: everything; ARGS='--only NAME')
	@$(if $(wildcard $(DATA)/trysquare/models),XDG_DATA_HOME=$(DATA)) $(BIN)/python -m examples.demo $(ARGS)

test: $(STAMPS)/dev node servers elysia clients bfcl weights system ## Set up and run all tests (default sizes)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

test-quick: $(STAMPS)/dev ## The tests that need no other program, toolchain, npm package or model: under 3 minutes
	$(BIN)/python -m pytest --quick -n $(WORKERS) --dist loadgroup

test-oldest: $(STAMPS)/oldest ## The quick tests with the lowest version of each dependency that pyproject.toml allows
	$(VENV)-oldest/bin/python -m pytest --quick -n $(WORKERS) --dist loadgroup

test-full: $(STAMPS)/dev node servers elysia clients bfcl weights system ## The same with the full sizes of the fuzz and fault suites
	TRYSQUARE_FULL=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

check: lint types imports ## What a machine can say about the code: ruff, pyright strict, import-linter

lint: $(STAMPS)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(STAMPS)/dev
	$(BIN)/pyright

imports: $(STAMPS)/dev
	$(BIN)/lint-imports

fmt: $(STAMPS)/dev ## Format the code and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(STAMPS)/docs ## Build the documentation site with search, llms.txt and llms-full.txt into site/
	$(BIN)/python scripts/site.py

recording: $(STAMPS)/runtime ## Record the terminal of the README again, from real commands
	$(BIN)/python scripts/recording.py

screenshots: $(STAMPS)/dev node system ## Take the pictures of the console again, in a real browser
	$(BIN)/python scripts/screenshots.py

bench: $(STAMPS)/dev node servers ## Measure us and the peers in one run (ARGS=--help: the sections, and how long each takes)
	$(BIN)/python -m benchmarks $(ARGS)

data: bfcl ## Bring the public questions that `make bench` measures search on

tune-search: $(STAMPS)/dev bfcl ## Learn the weights of search on the training parts of public sets, and print them (ARGS="--sources DIR")
	$(BIN)/python -m benchmarks.tune_search $(ARGS)

bench-explain: $(STAMPS)/dev ## Change lines of real packages by seed, and measure whether `explain` names them (ARGS=--help)
	$(BIN)/python -m benchmarks.explain $(ARGS)

eval: $(STAMPS)/eval ## Ask local models real questions, and let the builder build; goes on where it stopped
	$(VENV)-eval/bin/python -m evals $(EVAL)

node: $(STAMPS)/node

servers: $(STAMPS)/servers

elysia: $(STAMPS)/elysia

clients: $(STAMPS)/clients

bfcl: $(STAMPS)/bfcl

weights: $(STAMPS)/weights

system: ## Install the Debian packages that the tests use, where this user can
	@sh scripts/system-packages.sh

lock: $(STAMPS)/dev ## Pin every dependency by version and hash; UPGRADE=1 takes the newest ones
	sh scripts/lock.sh

clean: ## Remove what was built
	rm -rf $(VENV) $(VENV)-elysia $(VENV)-clients $(VENV)-eval $(VENV)-oldest $(DATA) bfcl site dist $(STAMPS) tests/node/node_modules examples/gateway/node_modules

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Trysquare needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Set PYTHON=/path/to/python3.11.")'
	$(PYTHON) -m venv $(VENV)

$(STAMPS)/runtime: constraints/runtime.txt pyproject.toml | $(VENV)/pyvenv.cfg
	@mkdir -p $(STAMPS)
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r constraints/runtime.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(STAMPS)/dev: constraints/dev.txt $(STAMPS)/runtime
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r constraints/dev.txt
	@touch $@

$(STAMPS)/docs: constraints/docs.txt | $(VENV)/pyvenv.cfg
	@mkdir -p $(STAMPS)
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r constraints/docs.txt
	@touch $@

# Emptied first, so that nothing is left of an earlier set of versions.
$(STAMPS)/oldest: constraints/oldest.txt pyproject.toml
	@mkdir -p $(STAMPS)
	$(PYTHON) -m venv --clear $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --no-deps --require-hashes -r constraints/oldest.txt
	$(VENV)-oldest/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(STAMPS)/node: tests/node/package-lock.json $(STAMPS)/dev
	$(BIN)/python scripts/node_packages.py tests/node
	@touch $@

# Function schemas and questions of the Berkeley leaderboard, against which the grammar is tested. Only read, not imported.
$(STAMPS)/bfcl: constraints/bfcl.txt $(STAMPS)/dev
	$(BIN)/python -m pip download --quiet --no-deps --require-hashes --dest bfcl -r constraints/bfcl.txt
	@touch $@

# Real MCP servers for the gateway's example, demo and tests, and the Node that runs them.
$(STAMPS)/servers: examples/gateway/package-lock.json constraints/node.txt $(STAMPS)/runtime
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r constraints/node.txt
	$(BIN)/python scripts/node_packages.py examples/gateway
	@touch $@

# The smallest model, for the demo, in a folder of this checkout and not in the user's.
$(STAMPS)/weights: src/trysquare/models/local/install.py $(STAMPS)/runtime
	XDG_DATA_HOME=$(DATA) $(BIN)/trysquare models install smollm2-135m
	@touch $@

# Elysia in an environment of its own, because what it pins does not fit with what we need. Python 3.11 or 3.12.
$(STAMPS)/elysia: constraints/elysia.txt scripts/elysia_environment.sh scripts/elysia_language_model.py $(STAMPS)/dev
	sh scripts/elysia_environment.sh $(VENV)-elysia $(PYTHON)
	@touch $@

# Clients that are made with SDK 1.x, in an environment of their own, because ours has 2.x.
$(STAMPS)/clients: constraints/clients.txt $(STAMPS)/dev
	$(PYTHON) -m venv $(VENV)-clients
	$(VENV)-clients/bin/python -m pip install --quiet --only-binary :all: --no-deps --require-hashes -r constraints/clients.txt
	@touch $@

# The evaluation in an environment of its own. bfcl-eval comes without what it names: its checker needs none of it.
$(STAMPS)/eval: constraints/eval.txt constraints/bfcl.txt pyproject.toml
	@mkdir -p $(STAMPS)
	$(PYTHON) -m venv $(VENV)-eval
	$(VENV)-eval/bin/python -m pip install --quiet --no-deps --require-hashes -r constraints/eval.txt
	$(VENV)-eval/bin/python -m pip install --quiet --no-deps --require-hashes -r constraints/bfcl.txt
	$(VENV)-eval/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@
