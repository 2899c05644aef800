# `make demo` and `make test` set up everything they need in .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint records clean
.DEFAULT_GOAL := test

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("holdfast needs Python 3.11 or newer, not " + sys.version.split()[0]) if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	$(BIN)/python -c 'import matplotlib.font_manager'  # builds its font cache once, here
	touch $@

demo: .venv/ready
	HF_HUB_OFFLINE=1 $(BIN)/holdfast drift --suite starter --conversations 96 --rounds 8 --method none --method split-softmax:exponent=0.5 --out runs/demo --report report.html

test: .venv/ready
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Hours. SELF_DIALOGUE=FILE (see training/README.md) measures the ablation too.
records: .venv/ready
	HF_HUB_OFFLINE=1 $(BIN)/python benchmarks/records.py $(if $(SELF_DIALOGUE),--self-dialogue $(SELF_DIALOGUE))

clean:
	rm -rf .venv
