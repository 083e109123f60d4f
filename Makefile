# Two commands from nothing: `make demo` and `make test`.  Both first make a virtual environment in .venv.
PYTHON ?= python3
BIN := .venv/bin

# Once, by all cores, also where Python is told not to write: every process that imports JAX starts three seconds sooner.
# Packages have templates that are not Python, so its exit code says nothing.
COMPILE := $(BIN)/python -m compileall -q -j 0 .venv/lib > /dev/null 2>&1 || true

.PHONY: demo test lint suite lock clean

demo: .venv/ready
	mkdir -p out
	$(BIN)/quenchphys coexistence --L 8 --bracket 2.25 2.33 --out out/coexistence.nc --plot out/coexistence.png --overwrite

# The checks take one core for half a minute, beside the tests.
test: .venv/ready
	$(MAKE) --jobs=2 suite lint

# Two workers on two cores: threads of linear algebra on top of them would only wait for each other.
suite: .venv/ready
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/mypy

.venv/ready: pyproject.toml requirements.lock
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --no-compile --constraint requirements.lock --editable '.[test]'
	$(COMPILE)
	touch $@

# The versions everything was tested with, from an environment made anew.
lock:
	rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install --quiet --editable '.[test,docs]'
	.venv-lock/bin/pip freeze --exclude-editable > requirements.lock
	rm -rf .venv-lock

clean:
	rm -rf .venv out
