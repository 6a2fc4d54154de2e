# Everything a newcomer needs is Python and make: each target creates the virtual environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2

.PHONY: help install report test test-slow check lint types imports bench bench-large clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.user: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[all]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.user
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

install: $(VENV)/.user  ## create .venv with the library and everything a user may want

report: $(VENV)/.user  ## write report.html for the breast cancer data that scikit-learn ships
	$(BIN)/vennforest report --example breast-cancer -o report.html

test: $(VENV)/.dev  ## run the tests and doctests
	$(BIN)/python -m pytest -n $(JOBS)

test-slow: $(VENV)/.dev  ## run the tests that take minutes
	$(BIN)/python -m pytest -n $(JOBS) -m slow

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

imports: $(VENV)/.dev
	$(BIN)/lint-imports

check: lint types imports test  ## everything that must be green before a change lands

BENCH = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest benchmarks -o addopts= \
	-o filterwarnings= -q --benchmark-columns=median,iqr,rounds

bench: $(VENV)/.dev  ## measure every speed target beside its peer and print the table
	$(BENCH)

bench-large: $(VENV)/.dev  ## the same with 10^7 scores and 10^6 rows
	$(BENCH) --large

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
