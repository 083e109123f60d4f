# Two commands from nothing: `make demo` and `make test`.  Both first make a virtual environment in .venv.
PYTHON ?= python3
BIN := .venv/bin

# Python's compiled form of what will be imported, kept even where Python is told to write none: every process that imports
# JAX starts three seconds sooner.
COMPILE := export PYTHONDONTWRITEBYTECODE=; \
	$(BIN)/python -c "import matplotlib.pyplot, quenchphys.targets, workflows" & \
	$(BIN)/python -c "import blackjax, netket, orbax.checkpoint" & wait

.PHONY: demo test lint suite site figures notebooks lock clean

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

# The documentation in site/, to be opened as files or served; nothing in it needs a network.
site: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# Every figure and table of the documentation made again, and what changed beyond errors: hours.  ONLY=gallery,
# ONLY=scaling_phi6 or MINUTES=2 for less; `python docs/scripts/figures.py --list` names them all.
figures: .venv/ready
	$(BIN)/python docs/scripts/figures.py $(ONLY) $(if $(MINUTES),--minutes $(MINUTES))

notebooks: .venv/ready
	$(BIN)/python docs/scripts/notebooks.py

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
