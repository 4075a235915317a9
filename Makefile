# Every target sets up what it needs: python3 (3.11 or newer) and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamps
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= false

.PHONY: demo test fast real check format bench studies wheel clean

demo: $(STAMP)/run
	$(BIN)/microtome examine --out microtome-runs/demo

# Two workers of one thread each: on two cores, more threads would only get in each other's way.
test: $(STAMP)/test
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile -m "not studies" --durations=15

fast: $(STAMP)/test
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile -m "not real and not studies"

real: $(STAMP)/test
	$(BIN)/pytest -m "real and not studies"

check: $(STAMP)/test
	$(BIN)/ruff format --check src tests benchmarks docs
	$(BIN)/ruff check src tests benchmarks docs
	$(BIN)/mypy
	$(BIN)/pytest -q tests/test_imports.py

format: $(STAMP)/test
	$(BIN)/ruff format src tests benchmarks docs
	$(BIN)/ruff check --fix src tests benchmarks docs

bench: $(STAMP)/test
	$(BIN)/python benchmarks/run.py

# Hours. Each script can be run by itself; those that train for long go on where they were stopped.
studies: $(STAMP)/test
	$(BIN)/pytest -m studies
	$(BIN)/python benchmarks/statistics_simulation.py
	$(BIN)/python benchmarks/micro_tasks_table.py
	$(BIN)/python benchmarks/nano_studies.py curves
	$(BIN)/python benchmarks/nano_studies.py sst2
	$(BIN)/python benchmarks/pretraining_stacking.py --text ../shared/data/text/*.txt.xz
	$(BIN)/python benchmarks/training_studies.py
	$(BIN)/python benchmarks/kao_studies.py
	$(BIN)/python benchmarks/singh_studies.py
	$(BIN)/python benchmarks/kovaleva_studies.py
	$(BIN)/python benchmarks/attention_patterns_studies.py ../shared/data/glue build/attention-patterns

# The wheel must work on its own: built, installed into a clean environment, imported from there.
wheel: $(STAMP)/test
	rm -rf dist build/wheel-check
	$(BIN)/python -m build --wheel --outdir dist
	$(PYTHON) -m venv build/wheel-check
	build/wheel-check/bin/pip install --quiet --disable-pip-version-check dist/*.whl
	cd build && wheel-check/bin/python -c "import microtome; print(microtome.load, microtome.parse('extend(15)'))"
	cd build && wheel-check/bin/microtome list edits > /dev/null
	rm -rf build/wheel-check

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(STAMP)/venv:
	$(PYTHON) -m venv $(VENV)
	mkdir -p $(STAMP)
	touch $@

$(STAMP)/run: $(STAMP)/venv pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[english]'
	touch $@

$(STAMP)/test: $(STAMP)/venv pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@ $(STAMP)/run
