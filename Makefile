# Every target sets up .venv by itself; only Python 3.11 or newer is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test test-real faults mutants lint format types imports bench eval races cycles journals histories soak fuzz load clean

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "memd needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

run: $(VENV)/.ready
	$(BIN)/python -m tests.walk

test: lint types imports
	$(BIN)/python -m pytest --ignore=tests/real

test-real: $(VENV)/.ready
	for program in git vim nano emacs rsync tmux zsh fish less; do command -v $$program >/dev/null || missing=1; done; \
	test -z "$$missing" || { apt-get update --quiet && DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet \
		--no-install-recommends git vim nano emacs-nox rsync tmux zsh fish less; }
	{ test -x /lib/systemd/systemd && command -v systemctl unshare nsenter setpriv pgrep && \
	  test -e /usr/lib/systemd/user/dbus.socket && /usr/bin/python3 -m ensurepip --version; } >/dev/null || \
	  { apt-get update --quiet && \
	    DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet systemd dbus-user-session util-linux procps python3-venv; }
	{ command -v node && command -v npm; } >/dev/null || \
	  { apt-get update --quiet && DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends nodejs npm; }
	test -x $(VENV)/node/node_modules/.bin/tsc || \
	  npm install --silent --no-audit --no-fund --prefix $(VENV)/node typescript@5 @types/node@20 @modelcontextprotocol/sdk@1
	$(BIN)/python -m pytest tests/real

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.ready
	$(BIN)/mypy

imports: $(VENV)/.ready
	$(BIN)/lint-imports --no-cache

# Hours, as root: a daemon is killed, and failed, at every call that touches its files, and the power is cut. PARTS=1
# takes a quarter of the failures and of the kills inside a recovery.
PARTS ?= 4
faults: $(VENV)/.ready
	{ command -v mkfs.xfs && command -v mkfs.ext4; } >/dev/null || { apt-get update --quiet && apt-get install --yes --quiet xfsprogs e2fsprogs; }
	$(BIN)/python -m tests.faults.sweep kills
	$(BIN)/python -m tests.faults.sweep recoveries errors --parts $(PARTS)
	$(BIN)/python -m tests.faults.cuts
	$(BIN)/python -m tests.faults.cuts_disks

# Bugs planted on purpose: each has to be caught by the check that is there for it.
mutants: $(VENV)/.ready
	$(BIN)/python -m tests.faults.mutants

bench: $(VENV)/.ready
	$(BIN)/python -m tests.bench

# EVAL_SETS names a directory of more retrieval sets than may be shipped.
eval: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[eval]'
	$(BIN)/python -m tests.evals
	$(BIN)/python -m tests.evals.sessions
	$(BIN)/python -m tests.evals.retrieval --parts $(if $(EVAL_SETS),--sets $(EVAL_SETS))

races: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m tests.lives races

cycles: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m tests.lives cycles

journals: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m tests.faults.journals

N ?= 10000
histories: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m tests.faults.machine_histories --number $(N)

MINUTES ?= 60
soak: $(VENV)/.ready
	$(BIN)/python -m tests.faults.soak --minutes $(MINUTES)

# Seconds of fuzzing each target, and examples of Hypothesis in all.
FUZZ_SECONDS ?= 60
FUZZ_EXAMPLES ?= 100000

fuzz: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fuzz]'
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) --examples $(FUZZ_EXAMPLES)

load: MINUTES = 10
load: $(VENV)/.ready
	$(BIN)/python -m tests.load --minutes $(MINUTES)

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
