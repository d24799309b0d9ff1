# `make demo` runs the main job, `make test` passes the quick tests, `make test-all` the slow ones. Each sets up what it
# needs, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LIGHT := $(VENV)/.light
READY := $(VENV)/.ready
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
EDITABLE := $(INSTALL) --no-build-isolation --no-deps --editable .
LOCKED := $(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header --no-annotate

# Bytecode is kept, whatever the environment says: asserts of all tests are rewritten once and not in each run.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/bytecode

.PHONY: demo docs test test-all test-long bench lint lock setup chromium postgres node types clean
.DEFAULT_GOAL := demo

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("heedful needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12") if sys.version_info < (3, 11) else 0'
	@echo "heedful: making $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# One environment, two steps, each hash by hash and done again when its lock changes: requirements-demo.lock is what the
# demo runs with, requirements.lock the same and all the tools of the workshop. One of these, vw-estimators, has no wheel.
# What it is built with, requirements-setup.lock, comes first: pip would fetch it without asking for a hash.
$(LIGHT): requirements-demo.lock pyproject.toml | $(BIN)/python
	@echo "heedful: setting up $(VENV) for the demo (about 50 packages, 140 MB to fetch; once)"
	@$(INSTALL) --require-hashes -r requirements-demo.lock
	@$(EDITABLE)
	@touch $@

$(READY): requirements.lock requirements-setup.lock pyproject.toml | $(BIN)/python
	@echo "heedful: setting up $(VENV) with all that the tests need (about 120 packages, 500 MB to fetch; once)"
	@$(INSTALL) --require-hashes --only-binary :all: -r requirements-setup.lock
	@$(INSTALL) --require-hashes --no-build-isolation --use-pep517 -r requirements.lock
	@$(EDITABLE)
	@touch $(LIGHT) $@

setup: $(READY)

demo: $(LIGHT)
	@$(BIN)/heedful demo

# The site: build/site/index.html. A link that leads nowhere fails.
docs: $(READY)
	@echo "heedful: making build/site"
	@$(BIN)/python -m sphinx --fail-on-warning --keep-going --fresh-env --quiet --conf-dir docs --doctree-dir build/doctrees . build/site

lint: $(READY)
	@echo "heedful: format, lint, types"
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

# The pages are tried in a real browser: the one that is here, or one that this installs and says so.
chromium: $(READY)
	@$(BIN)/python tests/browser/chromium.py

# Loops in a database are tried on a real server: one that is here, or one that this installs and says so.
postgres: $(READY)
	@$(BIN)/python tests/postgres.py

# The TypeScript client is tried with a Node.js that is here or in the environment, and packages that this fetches.
node: $(READY)
	@$(BIN)/python tests/node.py

# What the client knows of the server's routes, after a change of these.
types: $(READY)
	@$(BIN)/python tests/node.py types

# Three workers on two cores: a fifth of the time a test waits, for a page, a process or a lease.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadfile

# What a change needs: in minutes, without a process, a database server, a browser, Node.js or a compiler.
test: lint
	@echo "heedful: the quick tests (the others: make test-all)"
	@$(PYTEST) -m "not slow and not long" --ignore tests/browser --ignore tests/clients

test-all: chromium postgres node
	@echo "heedful: the slow tests, with real servers, browsers and compilers (the long versions: make test-long)"
	@$(PYTEST) -m "slow and not long"

test-long: lint chromium postgres node
	@echo "heedful: all tests, the long versions too"
	@HEEDFUL_LONG=1 $(PYTEST)

# On a quiet machine, half an hour. The last two want the Sushi set: make bench SUSHI=FOLDER. bench/peers/run.py, which is
# run by itself, makes an environment of its own.
bench: $(READY)
	@for each in coactive clicks loop server neighbours ratings; do \
		echo "heedful: bench/$$each.py"; $(BIN)/python bench/$$each.py || exit 1; \
	done
	@for each in $(if $(SUSHI),questions collaborative); do \
		echo "heedful: bench/$$each.py"; $(BIN)/python bench/$$each.py --sushi "$(SUSHI)" || exit 1; \
	done

# The smaller ones have the versions of the large one.
lock: $(READY)
	@$(LOCKED) --all-extras --group dev pyproject.toml -o requirements.lock
	@$(LOCKED) --constraint requirements.lock --extra demo --group build pyproject.toml -o requirements-demo.lock
	@$(LOCKED) --constraint requirements.lock --extra serve --extra postgres --group build pyproject.toml -o requirements-server.lock
	@$(LOCKED) --constraint requirements.lock --group setup -o requirements-setup.lock
	@$(LOCKED) --constraint requirements.lock pyproject.toml -o requirements-core.lock
	@$(LOCKED) --constraint requirements.lock --extra serve --extra client --group build --group setup pyproject.toml \
		bench/peers/requirements.in -o bench/peers/requirements.lock

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache clients/typescript/node_modules clients/typescript/dist
