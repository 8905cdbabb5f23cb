# Everything that CI does is one of these targets.

PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help

.PHONY: help
help:  ## Say what can be made.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

.venv/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=…")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[local]'
	@touch $@

.venv/installed-dev: .venv/installed
	$(BIN)/pip install --quiet --group dev
	@touch $@

.PHONY: demo
demo: .venv/installed  ## Run the whole chain on this machine, with a crash, and close the books.
	$(BIN)/debezium-inbox demo $(DEMO)

.PHONY: check
check: .venv/installed-dev  ## Check formatting, lint, types and import contracts.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: format
format: .venv/installed-dev  ## Format, and mend what can be mended.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: test
test: .venv/installed-dev  ## Run every tier that this machine can run; say what was skipped and why.
	$(BIN)/pytest

.PHONY: test-unit
test-unit: .venv/installed-dev  ## Run the tests that need no server.
	$(BIN)/pytest tests/unit

.PHONY: test-integration
test-integration: .venv/installed-dev  ## Run the tests on a real Postgres.
	$(BIN)/pytest tests/integration

.PHONY: test-stack
test-stack: .venv/installed-dev  ## Run the tests on the whole real chain.
	$(BIN)/pytest tests/stack

.PHONY: test-containers
test-containers: .venv/installed-dev  ## Run the integration tests on servers from Docker.
	$(BIN)/pytest tests/integration tests/containers --backend containers

.PHONY: build
build: .venv/installed-dev  ## Build the wheel and the sdist into dist/.
	rm -rf dist
	$(BIN)/python -m build --installer pip

.PHONY: lock
lock: .venv/installed-dev  ## Write the lock of the local stack's files anew.
	$(BIN)/python tools/lock_jars.py

.PHONY: bench
bench: .venv/installed-bench  ## Measure, and print the figures.
	$(BIN)/python -m benchmarks.latency
	$(BIN)/python -m benchmarks.throughput

.venv/installed-bench: .venv/installed-dev
	$(BIN)/pip install --quiet --group bench
	@touch $@
