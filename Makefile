# A fresh machine needs Python 3.11 or later and make; everything else goes into .venv.
#   make demo PYTHON=python3.12     picks another interpreter

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Two workers beat `-n auto`: the tests are short, and starting a worker costs more than it saves.
WORKERS ?= 2

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check lint format types imports clean

help: ## show these lines
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1|/' \
	  | while IFS='|' read -r name what; do printf '  make %-7s %s\n' "$$name" "$$what"; done

demo: $(VENV)/.installed ## two Agents play ten games of Wordle; shows the leaderboard
	@$(BIN)/plural run --benchmark wordle-ten --agent solver --agent novice

test: $(VENV)/.installed-dev ## run the tests that need neither Docker nor a browser
	$(BIN)/python -m pytest -n $(WORKERS) -m 'not docker and not browser'

check: lint format types imports ## lint, format, types and the direction of imports

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check

format: $(VENV)/.installed-dev
	$(BIN)/ruff format --check

types: $(VENV)/.installed-dev
	$(BIN)/mypy

imports: $(VENV)/.installed-dev
	$(BIN)/lint-imports

clean: ## remove .venv, caches and built files; records in .plural stay
	rm -rf $(VENV) dist build .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache

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
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@
