# Everything that a fresh machine needs: `make demo` runs the main job, `make test` the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-postgresql lint docs wheel-test bench clean

demo: $(VENV)/ready
	$(BIN)/sparseeinsum demo

test: $(VENV)/ready
	$(BIN)/python -m pytest -n auto -q --durations=25

# All tests of databases, on PostgreSQL; `test` runs a part of them there.
test-postgresql: $(VENV)/ready
	$(BIN)/python -m pytest -n auto -q --engines=postgresql

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation as a site, in build/site; every warning is an error. Its examples are run by the tests.
docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# The wheel, installed alone and away from the checkout: its files must be inside.
wheel-test: $(VENV)/ready
	rm -rf build/wheel
	$(BIN)/python -m build --wheel --outdir build/wheel . > /dev/null
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip install --quiet --disable-pip-version-check build/wheel/*.whl
	cd build/wheel && venv/bin/sparseeinsum demo --repeat 1

bench: $(VENV)/ready
	$(BIN)/python -m bench.gcn
	$(BIN)/python -m bench.attention
	$(BIN)/python -m bench.recipes
	$(BIN)/python -m bench.planning
	$(BIN)/python -m bench.planning --tiles
	$(BIN)/python -m bench.estimates
	$(BIN)/python -m bench.replanning
	$(BIN)/python -m bench.tiles
	$(BIN)/python -m bench.memory
	$(BIN)/python -m bench.rewriting
	$(BIN)/python -m bench.paper_tables
	$(BIN)/python -m bench.eindecomp
	$(BIN)/python -m bench.relational_algebra
	$(BIN)/python -m bench.regret

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

$(VENV)/docs: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) build dist
