# The two commands of the README: `make demo` and `make test`. Both make .venv themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DATA   ?= $(wildcard ../shared/data)

.PHONY: demo test lint types unit docs results bench clean

# torch first and alone: with the exact version in place nothing else can pull another build of it.
$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,docs]'
	touch $@

demo: $(VENV)/.ready
	$(BIN)/bayspike run digits --preset demo --method bayes ewc sgd --seeds 1 --out runs/demo --force

test: lint types unit docs

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.ready
	$(BIN)/mypy

unit: $(VENV)/.ready
	BAYSPIKE_DATA="$${BAYSPIKE_DATA:-$(abspath $(DATA))}" OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --cov --cov-report=term

# not --quiet: with it mkdocs drops the very warnings that --strict counts
docs: $(VENV)/.ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site

# hours; stops and goes on at any time. `python studies/results.py --list` says how far it is.
results: $(VENV)/.ready
	BAYSPIKE_DATA="$${BAYSPIKE_DATA:-$(abspath $(DATA))}" $(BIN)/python studies/results.py

# about a quarter of an hour on a quiet machine; writes the tables of docs/benchmarks.md. Other libraries are measured
# where they are installed: .venv/bin/pip install -c constraints.txt -e '.[bench]'
bench: $(VENV)/.ready
	$(BIN)/python benchmarks/everything.py

clean:
	rm -rf $(VENV) build site .pytest_cache .mypy_cache .ruff_cache
