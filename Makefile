# `make help` lists every command. The commands use the virtual environment .venv, which they make
# when it is not there, or the Python named by `make … PYTHON=/path/to/python`, as it is.

VENV := $(CURDIR)/.venv

ifeq ($(origin PYTHON),command line)
    INSTALLED :=
else
    override PYTHON := $(VENV)/bin/python
    INSTALLED := $(VENV)/.installed
endif

SOURCES := setup.py qbeast_core dbt tests scripts examples benchmarks
SOURCES := $(wildcard $(SOURCES))

TPCH := examples/tpch
TPCH_SCALE ?= 0.1

TESTS := tests/integration tests/property tests/docs tests/matrix/test_few_cells.py tests/unit
TWO_WORKERS := -n 2 --dist loadfile --no-loadscope-reorder

# What runs at users' places.
PACKAGES := qbeast_core dbt
AUDIT := $(CURDIR)/.venv-audit
AUDIT_TOOLS := "bandit[toml]==1.9.4" "pip-audit==2.10.1"

OLDER_SPARK ?= 4.0.1 4.1.1

# make bench SCALE=0.1 CASES="write sample"
SCALE ?= 1
CASES ?=

.PHONY: help
help:  ## List the commands.
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1@\2/p' Makefile | while IFS=@ read -r name text; do \
		printf '  make %-16s %s\n' "$$name" "$$text"; done

.PHONY: venv
venv: $(INSTALLED)  ## Create the virtual environment .venv with all development dependencies.

$(VENV)/.installed: setup.py constraints.txt dbt/adapters/qbeast/__version__.py
	@sh scripts/require.sh python > /dev/null
	@echo "Making the virtual environment .venv; the downloads take a few minutes."
	@test -x $(VENV)/bin/python || "$$(sh scripts/require.sh python)" -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		-c constraints.txt -e '.[dev,python-models]'
	@touch $@

.PHONY: java
java:
	@sh scripts/require.sh java

.PHONY: demo
demo: java $(INSTALLED)  ## Build, sample, test and optimize TPC-H models with dbt (under 5 minutes).
	@sh scripts/demo.sh $(PYTHON) $(TPCH_SCALE)

.PHONY: test
test: java $(INSTALLED) lint typecheck  ## Run all required checks: lint, types, tests, dbt's adapter tests.
	$(PYTHON) -m pytest $(TWO_WORKERS) --durations=30 -m "not exhaustive" tests/conformance $(TESTS)

.PHONY: test-exhaustive
test-exhaustive: java $(INSTALLED)  ## Run the tests that `make test` leaves out.
	$(PYTHON) -m pytest $(TWO_WORKERS) -m exhaustive $(TESTS)

.PHONY: test-fast
test-fast: $(INSTALLED) lint typecheck  ## Run the checks without a JVM: lint, types and unit tests.
	$(PYTHON) -m pytest -m "not slow" tests/unit

.PHONY: test-changed
test-changed: java $(INSTALLED)  ## Run the tests affected by changes since the last run.
	$(PYTHON) -m pytest --testmon $(TESTS)

.PHONY: test-all
test-all: test test-exhaustive matrix scale test-older-spark fuzz stress mutants  ## Run every test suite (hours).
	sh scripts/conformance.sh $(PYTHON) qbeast

.PHONY: matrix
matrix: java $(INSTALLED)  ## Compare every feature of Delta with a plain table, step by step (over an hour).
	$(PYTHON) -m pytest -n 2 tests/matrix

.PHONY: test-older-spark
test-older-spark: java $(INSTALLED)  ## Run the core's tests on older versions of Spark.
	sh scripts/older_spark.sh $(PYTHON) $(OLDER_SPARK)

.PHONY: scale
scale: java $(INSTALLED)  ## Test tables of a million rows or 100,000 blocks (10 minutes).
	$(PYTHON) -m pytest -s tests/scale

.PHONY: fuzz
fuzz: java $(INSTALLED)  ## Run random operations for 30 minutes and compare with a simple model.
	$(PYTHON) -m scripts.fuzz

.PHONY: stress
stress: java $(INSTALLED)  ## Let processes change and read one table at once for 10 minutes.
	$(PYTHON) -m scripts.stress

.PHONY: mutants
mutants: java $(INSTALLED)  ## Inject faults into the code one by one and check that tests fail.
	$(PYTHON) -m scripts.mutants

.PHONY: interop
interop: java $(INSTALLED)  ## Exchange tables with the real qbeast-spark (QBEAST_SPARK_JARS).
	@sh scripts/require.sh interop
	$(PYTHON) -m pytest tests/interop

.PHONY: conformance
conformance: java $(INSTALLED)  ## Run dbt's adapter tests on plain Delta tables and on indexed ones.
	sh scripts/conformance.sh $(PYTHON)

.PHONY: lint
lint: $(INSTALLED)  ## Check style and formatting of the code, and the English of documents and test names.
	$(PYTHON) -m ruff check $(SOURCES)
	$(PYTHON) -m ruff format --check $(SOURCES)
	$(PYTHON) -m scripts.prose

.PHONY: audit
audit: $(INSTALLED)  ## Run Bandit, and look up the pinned packages in lists of known vulnerabilities.
	@test -x $(AUDIT)/bin/pip-audit || { $(PYTHON) -m venv $(AUDIT) \
		&& $(AUDIT)/bin/python -m pip install --quiet --disable-pip-version-check $(AUDIT_TOOLS); }
	$(AUDIT)/bin/bandit --quiet --configfile pyproject.toml --recursive $(PACKAGES)
	$(AUDIT)/bin/pip-audit --strict --no-deps --disable-pip --requirement constraints.txt

.PHONY: format
format: $(INSTALLED)  ## Format the code and fix lint errors where possible.
	$(PYTHON) -m ruff check --fix $(SOURCES)
	$(PYTHON) -m ruff format $(SOURCES)

.PHONY: typecheck
typecheck: $(INSTALLED)  ## Check types (mypy --strict).
	$(PYTHON) -m mypy --strict qbeast_core dbt/adapters/qbeast

.PHONY: docs
docs: $(INSTALLED)  ## Build the documentation site into site/; open site/index.html.
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict

.PHONY: dist
dist: $(INSTALLED)  ## Build the source distribution and the wheel into dist/.
	rm -rf build dist *.egg-info
	$(PYTHON) -m build --quiet --no-isolation

.PHONY: bench
bench: java $(INSTALLED)  ## Compare with plain Delta and peers at SCALE, on Linux (1: under 15 minutes).
	$(PYTHON) -m benchmarks --scale $(SCALE) $(CASES)

.PHONY: bench-large
bench-large: java $(INSTALLED)  ## Measure growing tables, samples, scans and ranges at scale 10 (50 minutes).
	$(PYTHON) -m benchmarks --scale 10 $(or $(CASES),size sample full_scan ranges)

.PHONY: bench-dbt
bench-dbt: java $(INSTALLED)  ## Compare the overhead of dbt build with dbt-spark (5 minutes).
	$(PYTHON) -m benchmarks.dbt_overhead

.PHONY: bench-report
bench-report: $(INSTALLED)  ## Render the results into the documents and charts.
	$(PYTHON) -m benchmarks.report

.PHONY: pictures
pictures: java $(INSTALLED)  ## Run the notebook, and draw the documentation's pictures (5 minutes).
	$(PYTHON) -m scripts.notebook
	$(PYTHON) -m scripts.pictures

.PHONY: clean
clean:  ## Remove the virtual environment, caches and the demo's output.
	rm -rf $(VENV) $(AUDIT) .venv-spark-* .ci/venv build dist site *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	rm -rf $(TPCH)/data $(TPCH)/warehouse $(TPCH)/target $(TPCH)/logs
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
