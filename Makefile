# Everything that a fresh machine needs: `make demo` runs the main job, `make test` the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Packages compile to bytecode as they are imported: to compile all of them takes as long as to install them.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# So it must be kept, also where the environment says otherwise: tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo check test test-postgresql fuzz checked nightly lint docs wheel wheel-test bounds other-systems bench clean

demo: $(VENV)/demo-ready
	$(BIN)/sparseeinsum demo

# What to run before every commit, in about a minute: linters, and the tests that tests/selection.py chooses.
check: $(VENV)/ready lint
	$(BIN)/python -m pytest -n auto -q --check

# All tests but those that wait for `nightly`.
test: $(VENV)/ready
	$(BIN)/sparseeinsum compile-kernels
	$(BIN)/python -m pytest -n auto -q --durations=25

# All tests of databases, on PostgreSQL; `test` runs a part of them there.
test-postgresql: $(VENV)/ready
	$(BIN)/python -m pytest -n auto -q --engines=postgresql

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation as a site, in build/site; every warning is an error. Its examples are run by the tests.
docs: $(VENV)/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# Wheels that bring compiled kernels, for all platforms, in dist; PLATFORMS=linux_amd64 makes one.
wheel: $(VENV)/wheels
	$(BIN)/python -m sparseeinsum.kernels.building.wheels $(PLATFORMS)

# A wheel for this machine, installed alone and away from the checkout, where there is no compiler.
wheel-test: $(VENV)/ready
	rm -rf build/wheel
	$(BIN)/python -m sparseeinsum.kernels.building.wheels --here --output build/wheel
	.ci/wheel-test build/wheel

# The demo and some tests with the lowest versions of dependencies, and with the newest on the newest Python here; with
# the kernels of `wheel-test`.
bounds: wheel-test
	.ci/bounds $(PYTHON) lowest build/wheel/*.whl & lowest=$$!; \
		.ci/bounds newest newest build/wheel/*.whl && wait $$lowest

# The extension files of `make wheel` for other systems, in their command lines, which qemu and wine run here.
other-systems: $(VENV)/ready
	.ci/other-systems

# Everything that takes hours: all tests with fresh random examples, all wheels, attacks, and the bounds on every Python,
# with kernels that are compiled there. Each run prints its seed; SEED=... repeats it.
NIGHTLY = --nightly $(if $(SEED),--hypothesis-seed=$(SEED))
nightly: $(VENV)/ready wheel
	$(BIN)/python -m pytest -n auto -q $(NIGHTLY)
	$(BIN)/python -m pytest -n auto -q $(NIGHTLY) --engines=postgresql
	$(MAKE) checked MINUTES=10
	$(MAKE) fuzz MINUTES=30
	.ci/bounds $(PYTHON) lowest
	for python in $$(.ci/bounds list); do .ci/bounds $$python newest || exit 1; done

# Random programs and broken calls on each engine, for so many minutes; SEED=... repeats a run.
MINUTES ?= 5
fuzz: export PYTHONPATH = tests:tests/databases:tests/generators:tests/oracles
fuzz: $(VENV)/ready
	$(BIN)/python -m fuzzing --engine duckdb --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m fuzzing --engine postgresql --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

# Functions, programs and attacks on kernels in which an index that is out of bounds ends the process.
checked: export SPARSEEINSUM_CHECKED_KERNELS = 1
checked: $(VENV)/ready
	$(BIN)/python -m pytest -n auto -q $(NIGHTLY) $(wildcard tests/kernels/test_sql_*.py) tests/render/test_tiles.py \
		tests/kernels/test_resident_arrays.py tests/kernels/test_complex_functions.py tests/kernels/test_integer_functions.py
	$(MAKE) fuzz

bench: $(VENV)/ready
	$(BIN)/python -m bench.gcn
	$(BIN)/python -m bench.attention
	$(BIN)/python -m bench.peers
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
	$(BIN)/python -m bench.growth
	$(BIN)/python -m bench.regret

# What compiling the kernels takes comes first, so that they are compiled while the rest is installed.
$(VENV)/compiler: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[compile]'
	touch $@

$(VENV)/demo-ready: $(VENV)/compiler
	$(BIN)/sparseeinsum compile-kernels & compiling=$$!; $(PIP) --editable '.[scipy]' && wait $$compiling
	touch $@

$(VENV)/ready: $(VENV)/compiler
	$(BIN)/sparseeinsum compile-kernels & compiling=$$!; $(PIP) --editable '.[dev,docs]' && wait $$compiling
	touch $@

$(VENV)/wheels: $(VENV)/ready
	$(PIP) --editable '.[wheels]'
	touch $@

clean:
	rm -rf $(VENV) build dist
