# `make demo` and `make test` set everything up by themselves, in .venv.
PYTHON ?= python3
BIN := .venv/bin
# Bytecode is kept, where it was made: without it each of the many processes below compiles torch anew, 4 s a time.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo check test all-tests lint benchmark clean

demo: .venv/ready
	$(BIN)/algoscope demo

# The quick part of the tests, in under two minutes.
check: .venv/ready-for-tests lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal \
		tests/test_architecture.py tests/test_vocabulary.py tests/algorithms tests/symmetries tests/tasks tests/matching

# Pyright leaves a core idle.
test: .venv/ready-for-tests
	$(MAKE) --no-print-directory --jobs=2 lint all-tests

all-tests: .venv/ready-for-tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal

lint: .venv/ready-for-tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

benchmark: .venv/ready
	$(BIN)/python -m benchmarks.reference_side
	$(BIN)/pip install --quiet --no-compile --constraint constraints.txt transformers
	$(BIN)/python -m benchmarks.laptop
	$(BIN)/algoscope controls

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --no-compile --constraint constraints.txt --editable .
	touch $@

# Pyright fetches its own program, an npm package, when it first runs: that belongs to the set-up, not to the tests.
.venv/ready-for-tests: .venv/ready
	$(BIN)/pip install --quiet --no-compile --constraint constraints.txt --editable '.[test]'
	$(BIN)/pyright --version
	command -v chromium || (apt-get update -qq && apt-get install -yqq chromium) || echo "no Chromium: the page stays untested"
	touch $@

clean:
	rm -rf .venv demo .pytest_cache .ruff_cache .hypothesis
