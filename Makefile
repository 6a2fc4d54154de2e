# Python and make are enough: each target first creates the virtual environment it needs.
# What maintainers run besides is in tools/Makefile: `make -f tools/Makefile help`.
PYTHON ?= python3
VENV := .venv
PROGRAMS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(PROGRAMS)
JOBS ?= 2

.PHONY: help install report papers check test test-slow lint docs bench dist clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.user: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[all]'
	@touch $@

$(VENV)/.experiments: experiments/pyproject.toml | $(VENV)/.user
	$(BIN)/python -m pip install --quiet --editable . --editable experiments
	@touch $@

$(VENV)/.dev: pyproject.toml experiments/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]' --editable experiments
	@touch $(VENV)/.user $(VENV)/.experiments $@

$(VENV)/.docs: pyproject.toml $(VENV)/.experiments
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

install: $(VENV)/.user  ## create .venv with the library and its optional dependencies

report: $(VENV)/.user  ## write report.html for the breast cancer data that scikit-learn ships
	$(BIN)/vennforest report --example breast-cancer -o report.html

# Needs the paper's data sets: in the folder VENNFOREST_DATA, or else from OpenML.
papers: $(VENV)/.experiments  ## install the experiments, list their data sets, run one paper small
	$(BIN)/vennforest-experiments datasets
	$(BIN)/vennforest-experiments reproduce johansson2018 --datasets colic --repeats 1 --folds 2 --set trees=50

check: lint test  ## run lint and test: both must pass before a change lands

# Workers that share the cores would wait for each other's threads and processes.
test test-slow: export OMP_NUM_THREADS = 1
test test-slow: export OPENBLAS_NUM_THREADS = 1
test test-slow: export LOKY_MAX_CPU_COUNT = 1
test: $(VENV)/.dev  ## run the tests and doctests
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test-slow: $(VENV)/.dev  ## run the tests that take minutes
	@echo "Data sets are read from $${VENNFOREST_DATA:-no folder: set VENNFOREST_DATA, or tests of them are skipped}"
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m slow

lint: $(VENV)/.dev  ## check style (ruff), types (mypy) and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.docs  ## build the site in site/ and check its links
	$(BIN)/python tools/make_notebook.py --check examples/first_steps.ipynb
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	$(BIN)/python tools/check_site.py site

bench: $(VENV)/.dev  ## time the library beside scikit-learn and venn-abers
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest tools/benchmarks -o addopts= \
		-o filterwarnings= -q --benchmark-columns=median,iqr,rounds \
		--write experiments/results/speed.csv

# The archives are built from a copy of what is under version control, and each is installed alone.
dist: $(VENV)/.dev  ## build the wheels and source distributions, and try them
	rm -rf dist $(VENV)-dist
	$(BIN)/python -m pip install --quiet --editable '.[release]'
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --outdir dist experiments
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tools/check_dist.py dist $(RELEASE_TAG)
	$(PYTHON) -m venv $(VENV)-dist
	$(VENV)-dist/$(PROGRAMS)/python -m pip install --quiet dist/vennforest-*.whl
	cd $(VENV)-dist && $(PROGRAMS)/python ../tools/smoke.py
	$(VENV)-dist/$(PROGRAMS)/python -m pip install --quiet "$$(ls dist/vennforest-*.whl)[all]"
	cd $(VENV)-dist && $(PROGRAMS)/python ../tools/smoke.py --all
	$(VENV)-dist/$(PROGRAMS)/python -m pip install --quiet --find-links dist dist/vennforest_experiments-*.whl
	cd $(VENV)-dist && $(PROGRAMS)/python ../tools/smoke.py --experiments
	$(VENV)-dist/$(PROGRAMS)/python tools/licences.py
	$(VENV)-dist/$(PROGRAMS)/python -m pip check

clean:  ## remove virtual environments and caches
	rm -rf $(VENV) $(VENV)-* .coverage* dist site .pytest_cache \
		.mypy_cache .ruff_cache .import_linter_cache
