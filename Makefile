# The front door. Each target builds what it needs in .venv, from nothing but Python 3.11 or newer and make.
#
#   make PYTHON=/path/to/python demo     choose the interpreter (only the first time counts: it makes .venv)
#   make test ARGS="-k ring -x"          hand arguments to pytest
#   make test WORKERS=8                  test processes, 2 by default
#   make accuracy DATA=/path/to/tables   the folder of measurements, ../shared/data/measured by default

VENV    := .venv
BIN     := $(VENV)/bin
PYTHON  ?=
WORKERS ?= 2
ARGS    ?=
DATA    ?= ../shared/data/measured

PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --cov --cov-report=term

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-slow test-all check format bench docs calibrate accuracy clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.core ## plan the training of a 70-billion-parameter model on 256 accelerators
	@$(BIN)/meshwright plan llama-3.1-70b --cluster 32xdgx-a100-80g --global-batch 1024 --seq-len 4096

test: $(VENV)/.dev ## run the tests that take minutes at most, with coverage
	@$(PYTEST) -m "not slow" $(ARGS)

# Pytest leaves with 5 when no test is marked slow, which is no failure.
test-slow: $(VENV)/.dev ## run only the tests that `make test` leaves out
	@$(BIN)/python -m pytest -n $(WORKERS) -m slow $(ARGS) || [ $$? -eq 5 ]

test-all: $(VENV)/.dev ## run every test, the slow ones included, with coverage
	@$(PYTEST) $(ARGS)

check: $(VENV)/.dev ## check format, lint, types and the direction of imports
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(VENV)/.dev ## format the code and fix what the linter can fix
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

bench: $(VENV)/.core ## time the search (BENCH_QUICK=1 for a short run)
	@$(BIN)/python bench/search.py

docs: $(VENV)/.docs ## build the documentation into site/
	@$(BIN)/python docs/generate.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The documentation is in site/index.html"

calibrate: $(VENV)/.core ## fit the catalog's constants to the measurements in DATA
	@$(BIN)/python -m meshwright.measure.catalog $(DATA)

accuracy: $(VENV)/.accuracy ## predict the measurements in DATA, write docs/accuracy.md
	@$(BIN)/python docs/accuracy.py $(DATA)

clean: ## remove everything that these targets made
	rm -rf $(VENV) site dist build .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis \
		.import_linter_cache docs/commands.md docs/catalog.md
	find src tests bench docs -type d -name __pycache__ -prune -exec rm -rf {} +

# Set-up. Each stamp stands for one set of packages in the same .venv and is renewed when pyproject.toml changes.

$(VENV)/.made:
	@for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11 python; do \
		if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
			echo "Making $(VENV) with $$("$$python" --version)" && "$$python" -m venv --clear $(VENV) && touch $@ && exit 0; \
			exit 1; \
		fi; \
	done; \
	echo "Meshwright needs Python 3.11 or newer, with its venv module, and found none on the PATH." >&2; \
	echo "Install one (on Debian and Ubuntu: apt install python3 python3-venv) or name it: make PYTHON=/path/to/python" >&2; \
	exit 1

$(VENV)/.core: pyproject.toml | $(VENV)/.made
	@echo "Installing Meshwright"
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.made
	@echo "Installing Meshwright with its development tools"
	@$(PIP) install --editable '.[dev]'
	@touch $@ $(VENV)/.core

$(VENV)/.docs: pyproject.toml | $(VENV)/.made
	@echo "Installing Meshwright with its documentation tools"
	@$(PIP) install --editable '.[docs]'
	@touch $@ $(VENV)/.core

$(VENV)/.accuracy: pyproject.toml | $(VENV)/.made
	@echo "Installing Meshwright with what draws the accuracy page"
	@$(PIP) install --editable '.[accuracy]'
	@touch $@
