# Everything a newcomer needs is Python and make: each target creates the virtual environment first.
PYTHON ?= python3
VENV := .venv
# Where an environment keeps its programs.
PROGRAMS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(PROGRAMS)
JOBS ?= 2

.PHONY: help install report papers test coverage test-slow test-lowest test-newest test-boosters test-engines \
	test-mlflow test-nojit test-sdist fuzz exact mutants audit models check lint types imports docs pictures \
	notebook compare bench bench-large dist release-check clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/.user: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[all]'
	@touch $@

$(VENV)/.experiments: experiments/pyproject.toml | $(VENV)/.user
	$(BIN)/python -m pip install --quiet --editable . --editable experiments
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.experiments | $(VENV)/.user
	$(BIN)/python -m pip install --quiet --editable '.[dev]' --editable experiments
	@touch $@

install: $(VENV)/.user  ## create .venv with the library and everything a user may want

report: $(VENV)/.user  ## write report.html for the breast cancer data that scikit-learn ships
	$(BIN)/vennforest report --example breast-cancer -o report.html

# Needs the paper's data sets: in the folder VENNFOREST_DATA, or else from OpenML.
papers: $(VENV)/.experiments  ## install the experiments, list their data sets, run one paper small
	$(BIN)/vennforest-experiments datasets
	$(BIN)/vennforest-experiments reproduce johansson2018 --datasets colic --repeats 1 --folds 2 --set trees=50

test: $(VENV)/.dev  ## run the tests and doctests of the library and of the experiments
	$(BIN)/python -m pytest -n $(JOBS)

MEASURED = --cov --cov-append --cov-report=
# Every branch of these is reached by a test, that of a compiled loop where it is not compiled.
COVERED_WHOLLY = src/vennforest/calibrators/*,src/vennforest/export/*,src/vennforest/sources/*,src/vennforest/forest/*,$\
	src/vennforest/multiprobability.py,src/vennforest/_bounds_kernels.py

# Uncompiled loops first, so that what pytest says last is about all the tests.
coverage: $(VENV)/.dev  ## run the tests, loops compiled and not, and fail unless they reach the code
	$(BIN)/python -m coverage erase
	VENNFOREST_PATIENCE=5 $(TEST_NOJIT) $(MEASURED)
	$(BIN)/python -m pytest -n $(JOBS) $(MEASURED)
	$(BIN)/python -m coverage report --skip-covered --fail-under=95
	$(BIN)/python -m coverage report --skip-covered --show-missing --fail-under=100 \
		--include='$(COVERED_WHOLLY)'

test-slow: $(VENV)/.dev  ## run the tests that take minutes
	$(BIN)/python -m pytest -n $(JOBS) -m slow

# Each of the five has an environment of its own, made anew when pyproject.toml changes.
$(VENV)-lowest/.made: pyproject.toml scripts/lowest.py
	$(PYTHON) -m venv --clear $(VENV)-lowest
	$(PYTHON) scripts/lowest.py > $(VENV)-lowest/constraints.txt
	$(VENV)-lowest/$(PROGRAMS)/python -m pip install --quiet --constraint $(VENV)-lowest/constraints.txt \
		--editable '.[peers,test]' --editable experiments
	@touch $@

$(VENV)-boosters/.made: pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)-boosters
	$(VENV)-boosters/$(PROGRAMS)/python -m pip install --quiet --editable '.[boosters,forests,test]'
	@touch $@

$(VENV)-engines/.made: pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)-engines
	$(VENV)-engines/$(PROGRAMS)/python -m pip install --quiet --editable '.[spark,test]'
	@touch $@

$(VENV)-mlflow/.made: pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)-mlflow
	$(VENV)-mlflow/$(PROGRAMS)/python -m pip install --quiet --editable '.[mlflow,test]'
	@touch $@

test-mlflow: $(VENV)-mlflow/.made  ## run the tests of models in MLflow
	$(VENV)-mlflow/$(PROGRAMS)/python -m pytest tests/persistence/test_mlflow.py

test-lowest: $(VENV)-lowest/.made  ## run the tests with the lowest declared version of every dependency
	$(VENV)-lowest/$(PROGRAMS)/python -m pytest -n $(JOBS)

test-boosters: $(VENV)-boosters/.made  ## run the tests with XGBoost, LightGBM, CatBoost and other packages' forests
	$(VENV)-boosters/$(PROGRAMS)/python -c 'import catboost, imblearn, lightgbm, sklearnex, xgboost'
	$(VENV)-boosters/$(PROGRAMS)/python -m pytest -n $(JOBS) tests/classifier/test_boosters.py tests/forest/test_third_party.py \
		tests/persistence -k 'booster or third_party'

test-engines: $(VENV)-engines/.made  ## run the tests on DuckDB, Dask processes and Spark (needs Java 17)
	$(VENV)-engines/$(PROGRAMS)/python -c 'import dask, duckdb, pyspark'
	$(VENV)-engines/$(PROGRAMS)/python -m pytest -m '' tests/engines tests/test_batch.py

NOJIT = tests/calibrators tests/forest tests/monitoring tests/sources tests/test_multiprobability.py
TEST_NOJIT = NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n $(JOBS) -W ignore::RuntimeWarning $(NOJIT)

test-nojit: $(VENV)/.dev  ## run the tests of compiled loops with the loops not compiled
	$(TEST_NOJIT)

# Nothing of this folder is read: the tests run where the archive is unpacked, on what it installs.
test-sdist: $(VENV)/.dev  ## run the tests from the source distribution
	rm -rf $(VENV)-sdist
	$(PYTHON) -m venv $(VENV)-sdist
	$(VENV)-sdist/$(PROGRAMS)/python -m pip install --quiet build
	$(VENV)-sdist/$(PROGRAMS)/python -m build --sdist --outdir $(VENV)-sdist/dist .
	mkdir $(VENV)-sdist/tree
	tar -xzf $(VENV)-sdist/dist/vennforest-*.tar.gz -C $(VENV)-sdist/tree --strip-components 1
	$(VENV)-sdist/$(PROGRAMS)/python -m pip install --quiet '$(VENV)-sdist/tree[peers,test]'
	rm -r $(VENV)-sdist/tree/src
	cd $(VENV)-sdist/tree && ../$(PROGRAMS)/python -m pytest -n $(JOBS) tests README.md

# Everything that pip calls newest today, whatever an environment made earlier holds.
test-newest:  ## run the tests with the newest version of every dependency
	$(PYTHON) -m venv --clear $(VENV)-newest
	$(VENV)-newest/$(PROGRAMS)/python -m pip install --quiet --upgrade --upgrade-strategy eager \
		--editable '.[peers,test]' --editable experiments
	$(VENV)-newest/$(PROGRAMS)/python -m pytest -n $(JOBS)

COUNT ?= 100000
SECONDS ?= 0
SEED ?= 0

fuzz: $(VENV)/.dev  ## change model files COUNT times, for SECONDS at most; goes on where it stopped
	PYTHONPATH=tests $(BIN)/python tests/support/fuzzing.py --count $(COUNT) --seconds $(SECONDS) --seed $(SEED) \
		--state .fuzz-$(SEED).json

CASES ?= 1000000

exact: $(VENV)/.dev  ## compare bounds of CASES drawn cases with exact ones; goes on where it stopped
	PYTHONPATH=tests $(BIN)/python tests/support/exactness.py --count $(CASES) --seconds $(SECONDS) --seed $(SEED) \
		--state .exact-$(SEED).json

MUTANTS ?= 300

mutants: $(VENV)/.dev  ## change MUTANTS places of kernels, merges and sources; goes on where it stopped
	$(BIN)/python tests/support/mutating.py --count $(MUTANTS) --seconds $(SECONDS) --seed $(SEED) \
		--state .mutants-$(SEED).json

models: $(VENV)/.dev  ## write a small model file of every kind for later versions to read
	$(BIN)/python tests/models/make.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

imports: $(VENV)/.dev
	$(BIN)/lint-imports

check: lint types imports $(if $(COVERAGE),coverage,test)  ## everything that must be green before a change lands

$(VENV)/.docs: pyproject.toml $(VENV)/.experiments | $(VENV)/.user
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

docs: $(VENV)/.docs  ## run the notebook, build the site, which needs no network to be read, look for dead links
	$(BIN)/python scripts/make_notebook.py --check examples/first_steps.ipynb
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	$(BIN)/python scripts/check_site.py site

EXAMPLES = own_table boosting many_classes hospital credit drift promises explanation

pictures: $(VENV)/.dev  ## draw the pictures of the site anew
	MATPLOTLIBRC=docs/pictures $(BIN)/python docs/make_pictures.py
	MATPLOTLIBRC=docs/pictures $(BIN)/python docs/make_table_pictures.py
	for name in $(EXAMPLES); do MATPLOTLIBRC=docs/pictures $(BIN)/python examples/$$name.py docs/pictures/$$name.svg || exit 1; done

notebook: $(VENV)/.docs  ## write examples/first_steps.ipynb from its script, and run it
	$(BIN)/python scripts/make_notebook.py examples/first_steps.py

# The archives are made from what is under version control, and tried where nothing else is installed.
dist: $(VENV)/.dev  ## build the wheel and the source distribution, look into them, try them alone
	rm -rf dist $(VENV)-dist
	$(BIN)/python -m pip install --quiet --editable '.[release]'
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --outdir dist experiments
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python scripts/check_dist.py dist $(RELEASE_TAG)
	$(PYTHON) -m venv $(VENV)-dist
	$(VENV)-dist/$(PROGRAMS)/python -m pip install --quiet dist/vennforest-*.whl
	cd $(VENV)-dist && $(PROGRAMS)/python ../scripts/smoke.py
	$(VENV)-dist/$(PROGRAMS)/python -m pip install --quiet "$$(ls dist/vennforest-*.whl)[all]"
	cd $(VENV)-dist && $(PROGRAMS)/python ../scripts/smoke.py --all
	$(VENV)-dist/$(PROGRAMS)/python scripts/licences.py
	$(VENV)-dist/$(PROGRAMS)/python -m pip check
	$(VENV)-dist/$(PROGRAMS)/python scripts/check_installed.py
	$(PYTHON) -m venv --clear $(VENV)-dist-experiments
	$(VENV)-dist-experiments/$(PROGRAMS)/python -m pip install --quiet --find-links dist dist/vennforest_experiments-*.whl
	cd $(VENV)-dist-experiments && $(PROGRAMS)/python ../scripts/smoke.py --experiments
	$(VENV)-dist-experiments/$(PROGRAMS)/python -m pip check

# It asks the Python package index about every installed package, and so is no part of release-check.
audit:  ## look for known vulnerabilities of what users install (needs the index itself, no mirror)
	$(PYTHON) -m venv --clear $(VENV)-audit
	$(VENV)-audit/$(PROGRAMS)/python -m pip install --quiet --upgrade pip
	$(VENV)-audit/$(PROGRAMS)/python -m pip install --quiet '.[all]' pip-audit
	$(VENV)-audit/$(PROGRAMS)/python -m pip_audit --local --skip-editable

# The tests of the source distribution run with the newest version of everything: its environment is new.
release-check: lint types imports coverage dist docs test-sdist test-lowest test-boosters  ## everything that must be green before a release

BENCH = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest benchmarks -o addopts= \
	-o filterwarnings= -q --benchmark-columns=median,iqr,rounds

# In an environment of its own: some of the packages bring a gigabyte.
$(VENV)-compare/.made: pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)-compare
	$(VENV)-compare/$(PROGRAMS)/python -m pip install --quiet --editable '.[compare]' --editable experiments
	@touch $@

compare: $(VENV)-compare/.made  ## compare with the other packages and write docs/results/compare.md
	OMP_NUM_THREADS=1 $(VENV)-compare/$(PROGRAMS)/python -m experiments.studies.compare $(COMPARE)

bench: $(VENV)/.dev  ## measure every speed target beside its peer and print the table
	$(BENCH)

bench-large: $(VENV)/.dev  ## the same with 10^7 scores and 10^6 rows
	$(BENCH) --large

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) $(VENV)-* .coverage* dist site .fuzz-*.json .exact-*.json .mutants-*.json .pytest_cache \
		.mypy_cache .ruff_cache .import_linter_cache
