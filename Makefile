# Every target sets up what it needs: python3 (3.11 or newer) and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamps
# constraints.txt holds the versions that are tested.
INSTALL := pip install --quiet --disable-pip-version-check --constraint constraints.txt
# In the order of tests/conftest.py.
BY_FILE := --dist loadfile --no-loadscope-reorder
CODE := src tests bench studies tools docs
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= false

.PHONY: demo test fast real check format bench studies lowest docs wheel clean

demo: $(STAMP)/run
	$(BIN)/microtome examine --out microtome-runs/demo

# Two workers of one thread each: on two cores, more threads would only get in each other's way.
test: $(STAMP)/test
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 $(BY_FILE) -m "not studies" --durations=15

fast: $(STAMP)/test
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 $(BY_FILE) -m "not real and not studies"

real: $(STAMP)/test
	$(BIN)/pytest -m "real and not studies"

check: $(STAMP)/test
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy
	$(BIN)/codespell README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md docs src/microtome --skip "*.js,*.html,*/embedded/*"
	$(BIN)/pytest -q tests/test_imports.py tests/test_packaging.py tests/test_docs.py::test_links_between_pages_lead_somewhere

format: $(STAMP)/test
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

bench: $(STAMP)/test
	$(BIN)/python bench/run.py

# Hours. Each script can be run by itself; those that train for long resume where they were stopped.
studies: $(STAMP)/test
	$(BIN)/pytest -m studies
	$(BIN)/python studies/statistics_simulation.py
	$(BIN)/python studies/attention_tests.py
	$(BIN)/python studies/micro_tasks_table.py
	$(BIN)/python studies/nano.py curves
	$(BIN)/python studies/nano.py sst2
	$(BIN)/python studies/pretraining_stacking.py --text ../shared/data/text/*.txt.xz
	$(BIN)/python studies/finetuning.py
	$(BIN)/python studies/kao.py
	$(BIN)/python studies/singh.py
	$(BIN)/python studies/kovaleva.py
	$(BIN)/python studies/mpnet.py $(MICROTOME_MPNET)
	$(BIN)/python studies/trimming_texts.py sentences build/sentences.txt
	$(BIN)/python studies/trimming_texts.py phrases build/phrases.txt
	$(BIN)/python studies/trimming.py stsb --text build/sentences.txt --steps 200 --layers 3 --rival 3
	$(BIN)/python studies/trimming.py sst2 --text build/phrases.txt --steps 600 --layers 3 --rival 3
	$(BIN)/python studies/trimming.py mrpc --steps 100 --layers 3 --rival 3
	$(BIN)/python studies/healing_terms.py --text build/sentences.txt --seeds 0,1 --steps 100 --weights 0,0.3
	$(BIN)/python studies/fuzz --minutes 1
	$(BIN)/python studies/reliability/siege.py --times 5
	$(BIN)/python studies/reliability/soak.py --minutes 10 --pause 5
	$(BIN)/python studies/reliability/precision.py

# The fast tier on the lowest versions that pyproject.toml allows. A torch of that age comes with CUDA: 3 GB.
# They warn of what is deprecated since.
lowest:
	$(PYTHON) -m venv build/lowest
	build/lowest/bin/pip install --quiet --disable-pip-version-check --constraint constraints-lowest.txt --editable '.[test]'
	OMP_NUM_THREADS=1 build/lowest/bin/pytest -n 2 --dist loadfile -m "not real and not studies" -W ignore::DeprecationWarning -W ignore::FutureWarning

# The site, without network: build/site/index.html. A link that leads nowhere fails.
docs: $(STAMP)/docs
	$(BIN)/zensical build --clean --strict

# The wheel must work by itself, without extras: installed into a clean environment, used from there.
wheel: $(STAMP)/test
	rm -rf dist build/wheel-check
	$(BIN)/python -m build --wheel --outdir dist
	$(PYTHON) -m venv build/wheel-check
	build/wheel-check/bin/$(INSTALL) dist/*.whl
	cd build && wheel-check/bin/python -c "import microtome; print(microtome.load, microtome.parse('extend(15)'))"
	cd build && wheel-check/bin/microtome list edits > /dev/null
	cd build && wheel-check/bin/python -c "from microtome.tasks.reading.embedded import gold_rows; print(gold_rows('micro-squad', 'dev')[0].text)"
	cd build && wheel-check/bin/python -c "from importlib.resources import files; page = files('microtome') / 'explorer/static'; print(len((page / 'index.html').read_text()), len((page / 'parts/stack.js').read_text()))"
	cd build && wheel-check/bin/microtome --version
	rm -rf build/wheel-check

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(STAMP)/venv:
	$(PYTHON) -m venv $(VENV)
	mkdir -p $(STAMP)
	touch $@

$(STAMP)/run: $(STAMP)/venv pyproject.toml constraints.txt
	$(BIN)/$(INSTALL) --editable '.[english,explorer,pdf]'
	touch $@

$(STAMP)/docs: $(STAMP)/venv pyproject.toml constraints.txt
	$(BIN)/$(INSTALL) 'zensical>=0.0.70'
	touch $@

$(STAMP)/test: $(STAMP)/venv pyproject.toml constraints.txt
	$(BIN)/$(INSTALL) --editable '.[test]'
	touch $@ $(STAMP)/run
