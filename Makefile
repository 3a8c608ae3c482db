# A fresh machine needs Python 3.11 or later and make; everything else goes into .venv.
#   make demo PYTHON=python3.12     picks another interpreter

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# What of pyproject.toml's extras the tests get. `dev,video` writes a film too; it brings a large ffmpeg.
EXTRAS ?= dev
# Two workers beat `-n auto`: the tests are short, and starting a worker costs more than it saves.
WORKERS ?= 2
# Options of pip where training libraries are installed, such as a file of exact releases: PIP='-c FILE'.
PIP ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test trainers rllib check lint format types imports clean

help: ## show these lines
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1|/' \
	  | while IFS='|' read -r name what; do printf '  make %-8s %s\n' "$$name" "$$what"; done

demo: $(VENV)/.installed ## two Agents play ten games of Wordle; shows the leaderboard
	@$(BIN)/plural run --benchmark wordle-ten --agent solver --agent novice

test: $(VENV)/.installed-dev ## run the tests that need neither Docker nor a browser
	$(BIN)/python -m pytest -n $(WORKERS) -m 'not docker and not browser'

# Torch and the like are large, and what they need differs: each set has an environment of its own.
trainers: $(VENV)-trainers/.installed ## see Stable-Baselines3, TorchRL, Minari and a loop of one's own learn
	OMP_NUM_THREADS=1 PLURAL_REQUIRE_TRAINERS=1 $(VENV)-trainers/bin/python -m pytest -n $(WORKERS) \
	  tests/trainers tests/rl/integrations --ignore=tests/trainers/test_rllib.py

rllib: $(VENV)-rllib/.installed ## see RLlib learn; Ray asks for one exact Gymnasium
	OMP_NUM_THREADS=1 PLURAL_REQUIRE_TRAINERS=1 $(VENV)-rllib/bin/python -m pytest tests/trainers/test_rllib.py

check: lint format types imports ## lint, format, types and the direction of imports

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check

format: $(VENV)/.installed-dev
	$(BIN)/ruff format --check

types: $(VENV)/.installed-dev
	$(BIN)/mypy

imports: $(VENV)/.installed-dev
	$(BIN)/lint-imports

clean: ## remove environments, caches and built files; records in .plural stay
	rm -rf $(VENV) $(VENV)-trainers $(VENV)-rllib dist build .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "plural-gym needs Python 3.11 or later; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Stamps: a second call installs nothing. The two installations never run at the same time under `make -j`.
$(VENV)/.installed: $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS)]'
	@touch $@

$(VENV)-%/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)-$*
	$(VENV)-$*/bin/python -m pip install --quiet --disable-pip-version-check $(PIP) -e '.[$*]' pytest pytest-xdist
	@touch $@
