# make demo   answers three questions, from nothing
# make test   every check and test that CI runs
# make fix    mends what ruff can mend

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Installed first and pinned: without a torch in place, pip takes the newest one, which on Linux brings gigabytes of
# CUDA libraries. Where a GPU build is wanted: make TORCH='torch==VERSION' or TORCH= with a torch in $(VENV).
TORCH ?= torch==2.13.0

export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: install demo test checks model-tests other-tests fix clean

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(if $(TORCH),$(BIN)/pip install --quiet '$(TORCH)')
	$(BIN)/pip install --quiet --editable '.[local,graph,dev]'
	touch $@

# The pages leave out what another article of the corpus is about, so they are made again when one changes.
FACTS := data/corpus/facts.jsonl
ARTICLES := $(filter-out $(FACTS),$(wildcard data/corpus/*.jsonl))

$(FACTS): $(wildcard data/facts/*.tsv) data/facts/make_pages.py data/facts/sentences.py $(ARTICLES)
	$(PYTHON) data/facts/make_pages.py $@

demo: install $(FACTS)
	$(BIN)/medhop models fetch
	$(BIN)/medhop index build data/corpus
	$(BIN)/medhop ask --file data/demo.jsonl

test: install $(FACTS)
	$(BIN)/medhop models fetch
	$(BIN)/medhop models fetch smollm2-135m-instruct-q4_1
	$(MAKE) --no-print-directory --jobs=2 --keep-going --output-sync=target model-tests other-tests checks

# Parts of `make test`, two at a time: where one waits for a process, a disk or a clock, the other computes. All are
# run, whichever of them fails, and what each of them prints is shown in one piece.
checks: install
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# Without the cache, which two pytests would write at once.
model-tests: install
	$(BIN)/pytest -m lm -p no:cacheprovider

# Gives way to the tests with a model, which take longer.
other-tests: install
	nice -n 5 $(BIN)/pytest -m 'not lm'

fix: install
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) $(FACTS) build *.egg-info .pytest_cache .mypy_cache .ruff_cache
