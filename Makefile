# Main targets: `make train` and `make test`. Each target first installs the package into .venv.

VENV ?= .venv
ARGS ?=
PY := $(VENV)/bin/python
READY := $(VENV)/.installed
PIP := $(PY) -m pip --disable-pip-version-check

# The first interpreter of a supported version with the modules venv and ensurepip; DGL has builds up to Python 3.12.
FIND_PYTHON = for p in $(PYTHON) python3 python3.11 python3.10 python3.12 python3.13 python; do \
	"$$p" -c 'import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' \
	>/dev/null 2>&1 && { echo "$$p"; break; }; done

# Environments that change the order of summation, as other CPUs do; `here` is this machine unchanged.
MACHINES ?= here avx2 compatible
ON_here := env
ON_avx2 := env MKL_CBWR=AVX2 ATEN_CPU_CAPABILITY=avx2
ON_compatible := env MKL_CBWR=COMPATIBLE ATEN_CPU_CAPABILITY=default

.PHONY: help train test test-all test-machines $(MACHINES:%=test-on-%) docs lint tensorboard test-dgl2 test-cluster
.DEFAULT_GOAL := help

help:  ## list the targets
	@echo 'make train          cross-validate EGIN-E on MUTAG; other options: make train ARGS="model=egin dataset=cuneiform"'
	@echo 'make test           run the test suite without the slow tests'
	@echo 'make test-all       run make test, then the slow tests'
	@echo 'make test-machines  run the tests of trained numbers under three arithmetics; a subset: MACHINES="avx2"'
	@echo 'make tensorboard    start TensorBoard on outputs/'
	@echo 'make docs           regenerate the results in the documents that take minutes at most'
	@echo 'make lint           check style with ruff and types with mypy'
	@echo 'make test-dgl2      run the test suite with DGL 2.1.0 and torch 2.2.1 in .venv-dgl2 (several GB)'
	@echo 'make test-cluster   kill a node of a Ray cluster, of submitit and of torchrun, resume and compare; in .venv-cluster (several GB)'

# Bitwise reproducible across CPUs unless ARGS override it; a resumed run keeps its recorded settings.
train: $(READY)
	@$(PY) scripts/train.py $(if $(filter resume=%,$(ARGS)),,reproducible=any) $(ARGS)

test: $(READY)
	@$(PY) -m pytest -m "not slow" $(ARGS)

# Slow tests of one file share little, and those of the documents would keep one core busy long after the other.
test-all: test
	@$(PY) -m pytest -m slow --dist worksteal $(ARGS)

# .ci/run omits `here`, which make test covers.
test-machines: $(MACHINES:%=test-on-%)

$(MACHINES:%=test-on-%): test-on-%: $(READY)
	@echo 'Tests of trained numbers, machine: $*'
	@$(or $(ON_$*),$(error no machine $*: MACHINES takes some of here avx2 compatible)) $(PY) -m pytest -m "numbers and not slow and not process" $(ARGS)

docs: $(READY)
	@$(PY) scripts/docs.py --cheap --fresh $(ARGS)

lint: $(READY)
	@$(PY) -m ruff check . && $(PY) -m ruff format --check . && $(PY) -m mypy

tensorboard: $(READY)
	@$(VENV)/bin/tensorboard --logdir outputs $(ARGS)

# A stamp newer than pyproject.toml means installed: a second call installs nothing, a changed pyproject.toml installs again.
$(READY): pyproject.toml
	@if ! $(PY) -m pip --version >/dev/null 2>&1; then \
		python=$$($(FIND_PYTHON)); \
		if [ -z "$$python" ]; then \
			echo "egin_dgl needs Python 3.10, 3.11, 3.12 or 3.13 with venv, and none was found: install one" \
				"(with uv: uv venv --python 3.11 --seed $(VENV)) and run make again." >&2; \
			exit 1; \
		fi; \
		echo "Making $(VENV) with $$($$python --version); the first installation takes some minutes."; \
		$$python -m venv $(VENV); \
	fi
	@$(PIP) install -e ".[test]"
	@$(PIP) install --quiet "grakel>=0.1.10" || echo "grakel cannot be installed here (on Python 3.13 it needs a C++ compiler):" \
		"MUTAG and Cuneiform, which it carries, will be downloaded." >&2
	@touch $@

# The versions closest to DGL's CUDA wheels, installed over an ordinary installation as a CUDA user does.
test-dgl2:
	@$(MAKE) --no-print-directory VENV=.venv-dgl2 .venv-dgl2/.dgl2
	@.venv-dgl2/bin/python -m pytest $(ARGS)

.venv-dgl2/.dgl2: .venv-dgl2/.installed
	@.venv-dgl2/bin/python -m pip --disable-pip-version-check install \
		dgl==2.1.0 torch==2.2.1 torchdata==0.7.1 "numpy<2" pandas pydantic pyyaml
	@touch $@

# Ray and its launcher want older versions of joblib and others than the tests.
test-cluster:
	@$(MAKE) --no-print-directory VENV=.venv-cluster .venv-cluster/.cluster
	@.venv-cluster/bin/python scripts/cluster.py $(ARGS)

.venv-cluster/.cluster: .venv-cluster/.installed
	@.venv-cluster/bin/python -m pip --disable-pip-version-check install -e ".[ray]" psutil
	@touch $@
