# make corpus   set everything up and rebuild the corpus that params.yaml describes
# make test     set everything up and run the checks and the fast tests; make test-full runs the others
PYTHON      ?= python3
CONSTRAINTS ?= constraints.txt
VENV        := .venv
BIN         := $(VENV)/bin
READY       := $(VENV)/.ready
EXTRAS      := pipeline,fairseq-needs,experiments,test
export PATH := $(CURDIR)/$(BIN):$(PATH)
# With the default shell, make 3.81, which macOS has, looks for commands in the PATH that it was started with.
SHELL       := /bin/bash
# Many containers set it. Then each of some thirty processes compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

TABLE       ?= all
# By version, the Pythons of this machine: on PATH or of pyenv.
VERSIONS    ?= 3.11 3.12 3.13 3.14

.PHONY: help setup corpus bench test test-full test-thorough test-all test-processors lint types tests results experiments docs pictures clean

help:
	@echo "make corpus   set everything up and rebuild the corpus that params.yaml describes"
	@echo "make bench    measure every stage in about five minutes, and compare with this machine's last run (after make corpus)"
	@echo "make test     set everything up and run the checks and the fast tests"
	@echo "make test-full  run the other tests: killed runs, installation, clusters, trainings"
	@echo "make test-thorough  run property tests with 100 examples, and numeric tests with older instruction sets"
	@echo "make test-all run the tests on every Python from 3.11 to 3.14 that this machine has"
	@echo "make test-processors   run the numeric tests with the instruction sets of older processors"
	@echo "make results  write docs/results.md from the measurements in results/"
	@echo "make experiments TABLE=mega_batches   train and evaluate a table of the papers (needs PARAFORGE_DATA)"
	@echo "make docs     build the documentation as a site in build/site"
	@echo "make pictures take the README's screenshots in a finished project (needs Chromium and chromedriver)"
	@echo "make setup    only set up $(VENV); with a GPU: make setup CONSTRAINTS="
	@echo "make clean    remove the results of runs (data, models, work), but not $(VENV)"

setup: $(READY)

$(READY): pyproject.toml setup.py $(CONSTRAINTS)
	$(BIN)/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip uninstall -qqq --yes paraforge  # the distribution's former name
	PYTHONWARNINGS='ignore:Editable installation' $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile \
		$(if $(CONSTRAINTS),--constraint $(CONSTRAINTS)) --editable '.[$(EXTRAS)]'
	$(BIN)/paraforge doctor --install-fairseq || true  # without it, pretrained models work
	touch $@

corpus: setup
	test -e .git || git init --quiet  # of an unpacked archive: DVC needs a repository
	@# DVC cannot start if it was killed while it wrote its lock.
	$(BIN)/python -c 'import json; json.load(open(".dvc/tmp/rwlock"))' 2>/dev/null || rm -f .dvc/tmp/rwlock
	dvc repro
	paraforge summary

bench: setup
	python -m benchmarks.speed

# The types are checked while the tests wait for something.
test: setup lint
	$(MAKE) --jobs=2 types tests

# What 'make test' leaves out.
test-full: setup
	python -m pytest -n auto --dist worksteal -m full

# Properties with 100 examples each; then, as older processors compute, a tenth of the numeric tests,
# another tenth each day.
test-thorough: setup
	HYPOTHESIS_PROFILE=thorough python -m pytest -n auto --dist worksteal -m hypothesis
	python scripts/test_processors.py --today

# Each in an environment of its own; a Python that is missing is named, and is no failure.
test-all:
	@failed=; for version in $(VERSIONS); do \
		found=; for python in python$$version $(HOME)/.pyenv/versions/$$version.*/bin/python; do \
			$$python -c '' 2>/dev/null && found=$$python; \
		done; \
		if [ -z "$$found" ]; then echo "Python $$version is not installed: not tested"; continue; fi; \
		echo "Python $$version"; \
		$(MAKE) VENV=.venv-$$version PYTHON=$$found tests || failed="$$failed $$version"; \
	done; \
	test -z "$$failed" || { echo "tests failed on Python$$failed"; exit 1; }

test-processors: setup
	python scripts/test_processors.py

lint: setup
	ruff check .
	ruff format --check .

types: setup
	mypy

tests: setup
	python -m pytest -n auto --dist worksteal

results: setup
	python -m benchmarks.pages

experiments: setup
	python -m experiments run $(TABLE)

docs: setup
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict

pictures: setup
	python scripts/take_pictures.py .

clean:
	rm -rf data/ingested data/translated data/scored data/selected data/corpus data/rejected data/held_out data/lexicon \
		data/statistics data/triplets models/nmt models/paragram models/embeddings models/paraphraser work logs
