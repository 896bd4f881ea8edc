PYTHON ?= python3
EXTRAS := dev
# Test processes; each uses one thread.
WORKERS ?= 2
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all lint types results docs browser clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.stamp ## create .venv with everything the other targets need

demo: setup ## reconstruct a bundled case: demo/out.nc and demo/report.html
	$(BIN)/latentpde demo

test: setup browser ## run the fast tests
	$(BIN)/pytest -n $(WORKERS)

test-all: setup browser ## run every test, the slow ones too
	$(BIN)/pytest -n $(WORKERS) -m ""

lint: setup ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup ## check types
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright

results: setup ## draw tables and figures from results/runs, and write the numbers of README and docs
	$(BIN)/latentpde bench all --draw-only --quiet > /dev/null
	$(BIN)/python tools/write_results.py
	$(BIN)/python tools/write_reference.py

docs: .venv/.stamp-docs ## build the documentation, examples run: docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

browser: ## look for Chromium, which the browser tests need, and install it where possible
	@tools/install_browser.sh

clean: ## remove caches and what was built; .venv stays
	rm -rf build dist *.egg-info docs/_build docs/auto_examples .pytest_cache .ruff_cache .hypothesis
	find . -name .venv -prune -o -name __pycache__ -type d -exec rm -rf {} +

.venv/.stamp: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo 'LatentPDE needs Python 3.11 or later, and "$(PYTHON)" is not. Try: make setup PYTHON=/path/to/python3.11' >&2; exit 1; }
	@echo 'Installing LatentPDE and its tools into .venv (some minutes the first time) ...'
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$(EXTRAS)]"
	@touch $@

.venv/.stamp-docs: .venv/.stamp
	@echo 'Installing the documentation tools into .venv ...'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	@touch $@
