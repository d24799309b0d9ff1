# `make demo` runs the main job, `make test` passes the tests. Each sets up what it needs, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-long bench lint lock setup clean
.DEFAULT_GOAL := demo

# The environment holds exactly what requirements.lock says, hash by hash; it is rebuilt when that file changes.
$(READY): requirements.lock pyproject.toml
	@echo "heedful: setting up $(VENV) from requirements.lock (first time only, about a minute)"
	@$(PYTHON) -c 'import sys; sys.exit("heedful needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12") if sys.version_info < (3, 11) else 0'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

setup: $(READY)

demo: $(READY)
	@$(BIN)/heedful demo

lint: $(READY)
	@echo "heedful: format, lint, types"
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

test: lint
	@echo "heedful: tests (the long versions: make test-long)"
	@$(BIN)/python -m pytest -m "not long" -n 2 --dist loadgroup

test-long: lint
	@echo "heedful: all tests, the long versions too"
	@HEEDFUL_LONG=1 $(BIN)/python -m pytest -n 2 --dist loadgroup

bench: $(READY)
	@$(BIN)/python bench/coactive.py
	@$(BIN)/python bench/clicks.py
	@$(BIN)/python bench/loop.py
	@$(BIN)/python bench/server.py

lock: $(READY)
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header --no-annotate --all-extras --group dev pyproject.toml -o requirements.lock
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header --no-annotate pyproject.toml -o requirements-core.lock

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache
