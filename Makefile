# Two commands do everything, `make lab` and `make test`; each makes its own environment in .venv first.
PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2

BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# On all cores, where pip compiles on one; templates among the files are no Python, so its verdict does not count.
COMPILE := $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --durations=20

# Tests start many processes: each would compile our modules again.
unexport PYTHONDONTWRITEBYTECODE

.DELETE_ON_ERROR:
BENCHMARKS := as_thought resnet50_compile model_width pipeline_schedules full_size_numbers eight_times sweeps splits keras_fit cockpit

.PHONY: help lab test test-all hostile check reference golden stub corpus stability fidelity decide splits notebooks picture bench clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

lab: $(VENV)/.lab-ready ## open JupyterLab on the first notebook; without a terminal, run it and write build/first-look.html
	@$(BIN)/workbench lab

test: check ## ruff, mypy, import directions, then every test that is not slow
	$(PYTEST) -m "not slow"

test-all: $(VENV)/.test-ready ## what `make test` leaves out: slow tests, long properties, every browser size
	$(PYTEST) -m "slow or hypothesis" --hypothesis-profile=long

hostile: $(VENV)/.test-ready ## every public call with every class of hostile value, every damaged file, all random programs: the others run a share
	WORKBENCH_HOSTILE=all $(PYTEST) --hypothesis-profile=whole tests/hostile tests/engine/test_random_functions.py tests/engine/test_even_tiles.py

check: $(VENV)/.test-ready ## ruff, mypy --strict and the import directions
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_architecture.py

reference: $(VENV)/.test-ready ## measure an example of each option, and write docs/reference.md and what the app shows behind ?
	KERAS_BACKEND=jax $(BIN)/python -m tests.reference.write

golden: $(VENV)/.test-ready ## write the golden files again; read the difference before committing it
	$(BIN)/python -m pytest -q -m "not slow and not browser" --update-golden

stub: $(VENV)/.test-ready ## list the reports, exports and methods of a profile again, for editors and mypy
	$(BIN)/python -m tests.profiler.stub

corpus: $(VENV)/.test-ready ## profile every program of the corpus and write the digests; read the difference before committing it
	KERAS_BACKEND=jax $(BIN)/python -m tests.corpus.write

stability: $(VENV)/.test-ready ## profile 40 networks at 33 widths each and write how far a channel moves them
	KERAS_BACKEND=jax $(BIN)/python -m tests.stability.write

decide: $(VENV)/.test-ready ## hold 30 diagnoses against every point of a lattice and write the table
	KERAS_BACKEND=jax $(BIN)/python -m tests.decide.write
	KERAS_BACKEND=jax $(BIN)/python -m tests.decide.resnet

splits: $(VENV)/.test-ready ## cut six models over 2, 4 and 8 IPUs and write what was expected beside what came, and a plan for a Pod16
	KERAS_BACKEND=jax $(BIN)/python -m tests.splits.write
	KERAS_BACKEND=jax $(BIN)/python -m tests.splits.pod

fidelity: $(VENV)/.test-ready ## run every published case and write the table; read the difference before committing it
	$(BIN)/python -m tests.fidelity.report

notebooks: $(VENV)/.lab-ready ## run every notebook and store it with its outputs
	KERAS_BACKEND=jax $(BIN)/jupyter nbconvert --to notebook --execute --inplace \
		--ExecutePreprocessor.store_widget_state=False --ExecutePreprocessor.record_timing=False notebooks/*.ipynb

picture: $(VENV)/.test-ready ## draw the README's picture again
	KERAS_BACKEND=jax $(BIN)/python docs/picture.py

bench: $(VENV)/.test-ready ## the speed benchmarks, in fresh processes
	failed=0; for name in $(BENCHMARKS); do $(BIN)/python benchmarks/$$name.py || failed=1; done; exit $$failed

clean: ## remove what the commands made, the environment too
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The extension's files are copied into the environment.
$(VENV)/.lab-ready: pyproject.toml constraints.txt $(shell find workbench/labextensions -type f)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"workbench needs Python 3.11 or newer, not {sys.version.split()[0]}. Name one: make PYTHON=python3.12 ...")'
	@echo "environment  making $(VENV) (a minute or two the first time)"
	@start=$$(date +%s) && $(PYTHON) -m venv $(VENV) && $(INSTALL) -e . && { $(COMPILE); } && touch $@ \
		&& echo "environment  made in $$(($$(date +%s) - start)) s"

$(VENV)/.test-ready: $(VENV)/.lab-ready
	@start=$$(date +%s) && $(INSTALL) -e '.[test]' && { $(COMPILE); } && touch $@ \
		&& echo "environment  test tools added in $$(($$(date +%s) - start)) s"
