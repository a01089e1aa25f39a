# Two commands: `make train` and `make test`. Each sets itself up in .venv first.

VENV ?= .venv
ARGS ?=
PY := $(VENV)/bin/python
READY := $(VENV)/.installed
PIP := $(PY) -m pip --disable-pip-version-check

# The first interpreter of a version that DGL has wheels for and that can make a virtual environment.
FIND_PYTHON = for p in $(PYTHON) python3 python3.11 python3.10 python3.12 python; do \
	"$$p" -c 'import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' \
	>/dev/null 2>&1 && { echo "$$p"; break; }; done

.PHONY: help train test lint tensorboard test-dgl2
.DEFAULT_GOAL := help

help:  ## what can be made
	@echo 'make train         cross-validate EGIN-E on MUTAG; make train ARGS="model=egin dataset=cuneiform" for anything else'
	@echo 'make test          run the whole test suite'
	@echo 'make tensorboard   look at the runs in outputs/ in a browser'
	@echo 'make lint          check style with ruff'
	@echo 'make test-dgl2     the suite again with DGL 2.1.0 and torch 2.2.1 in .venv-dgl2 (several GB)'

# The same digits on every machine, unless ARGS say otherwise; what is resumed goes on as it began.
train: $(READY)
	@$(PY) scripts/train.py $(if $(filter resume=%,$(ARGS)),,reproducible=any) $(ARGS)

test: $(READY)
	@$(PY) -m pytest $(ARGS)

lint: $(READY)
	@$(PY) -m ruff check . && $(PY) -m ruff format --check .

tensorboard: $(READY)
	@$(VENV)/bin/tensorboard --logdir outputs $(ARGS)

# A stamp newer than pyproject.toml means installed: a second call installs nothing, a changed pyproject does.
$(READY): pyproject.toml
	@if ! $(PY) -m pip --version >/dev/null 2>&1; then \
		python=$$($(FIND_PYTHON)); \
		if [ -z "$$python" ]; then \
			echo "egin_dgl needs Python 3.10, 3.11 or 3.12 with venv, and none was found: install one" \
				"(with uv: uv venv --python 3.11 --seed $(VENV)) and run make again." >&2; \
			exit 1; \
		fi; \
		echo "Making $(VENV) with $$($$python --version); the first installation takes some minutes."; \
		$$python -m venv $(VENV); \
	fi
	@$(PIP) install -e ".[test]"
	@touch $@

# The pair that DGL's CUDA wheels resemble, laid over an ordinary installation as a CUDA user does it.
test-dgl2:
	@$(MAKE) --no-print-directory VENV=.venv-dgl2 .venv-dgl2/.dgl2
	@.venv-dgl2/bin/python -m pytest $(ARGS)

.venv-dgl2/.dgl2: .venv-dgl2/.installed
	@.venv-dgl2/bin/python -m pip --disable-pip-version-check install \
		dgl==2.1.0 torch==2.2.1 torchdata==0.7.1 "numpy<2" pandas pydantic pyyaml
	@touch $@
