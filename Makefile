# make demo                 a failure of a small agent, found and explained: the quickest look
# make lab [NAME=value …]   the whole lab on loopback: no Docker, no key
#                             UI=on shows it in the browser meanwhile, at an address that is printed first
# make compose [NAME=value …]   the same in containers, on the real Toxiproxy: needs Docker, no Python
# make sweep NAME=value,value …   the lab at each of these values, and charts over them: WORLD=virtual is quick
# make test                 everything that can run here
# make docs                 the documents as a site, in site/
# make frameworks           what seventeen frameworks make of faults, as docs/frameworks.md
PYTHON ?= python3
BIN    := .venv/bin

# uv, where there is one, installs in a sixth of pip's time. It has settings of its own for mirrors and certificates, so pip tries what it cannot.
UV ?= uv
# pip tells while it installs: a line as each tenth package is found, and what takes long. $(1) is given to both; the exit code of the last one counts.
TOLD = awk '/^Collecting/ && ++n % 10 == 0 {print "  " n " packages found, now " $$2} /^Installing collected/ {print "  installing " NF - 3 " packages"} {fflush()}'
INSTALL = { { command -v $(UV) >/dev/null && $(UV) pip install --quiet --python $(BIN)/python $(1); } || \
  $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off $(1) || touch .venv/failed; } | $(TOLD); \
  if test -e .venv/failed; then rm .venv/failed; exit 1; fi

# Settings given on the command line (make lab TOXIC_PROB=0.3) go to the lab as they are, quoted for the shell, since a
# setting may be JSON; PYTHON and UI are make's own.
GIVEN = $(foreach name,$(sort $(.VARIABLES)),$(if $(filter command-line,$(subst $() ,-,$(origin $(name)))),$(name)))
SETTINGS = $(foreach name,$(filter-out PYTHON UI,$(GIVEN)),'$(name)=$(subst ','\'',$(value $(name)))')

HERE := $(dir $(lastword $(MAKEFILE_LIST)))

.PHONY: names demo lab compose sweep charts test test-here test-live check laid types contracts release-check bench docs frameworks clean
.DEFAULT_GOAL := lab

define ENVIRONMENT
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; $$($(PYTHON) --version) was found. Try: make PYTHON=python3.13" >&2; exit 2; }
@test -x $(BIN)/python || $(PYTHON) -m venv .venv
endef

.venv/demo: pyproject.toml
	$(ENVIRONMENT)
	@echo "installing into .venv what a demonstration needs (once, about half a minute)"
	@$(call INSTALL,-e .)
	@touch $@

.venv/lab: pyproject.toml
	$(ENVIRONMENT)
	@echo "installing the lab into .venv (once, about a minute)"
	@$(call INSTALL,-e '.[lab]')
	@touch $@

.venv/dev: pyproject.toml
	$(ENVIRONMENT)
	@echo "installing the lab and what its tests need into .venv (once, about two minutes)"
	@$(call INSTALL,-e '.[dev]')
	@touch .venv/lab $@

.venv/docs: .venv/lab
	@echo "installing what the documents need (once)"
	@$(call INSTALL,-e '.[docs]')
	@touch $@

# A typo ends here, before anything is installed or built.
names:
	@awk -v given='$(filter-out PYTHON UI,$(GIVEN))' -f $(HERE)containers/names.awk $(HERE).env.example .env

demo: .venv/demo
	@$(BIN)/chaoslab demo

lab: names .venv/lab
	@$(BIN)/chaoslab lab $(if $(filter on,$(UI)),--ui) $(SETTINGS)

# Follows the agent, which ends with its report; then the report of one that was stopped or killed; then everything is taken down. Ctrl-C ends the following,
# and the agent is stopped by a command of its own: `up` hears one Ctrl-C in two ways, and may take the second for a wish to kill.
compose: names
	@docker info >/dev/null 2>&1 || { echo "no Docker engine answers: start Docker, or use 'make lab', which needs none" >&2; exit 2; }
	@docker compose version >/dev/null 2>&1 || { echo "docker has no 'compose' plug-in: install Docker Compose 2.40 or newer" >&2; exit 2; }
	@mkdir -p logs state charts data
	@trap : INT; code=0; \
	  pinned=$$(bash $(HERE)containers/pinned); export COMPOSE_LAST= COMPOSE_RUN=$$(date -u +%Y%m%d-%H%M%S) $$pinned; \
	  docker compose run --rm settings || exit; \
	  docker compose rm --stop --force agent >/dev/null 2>&1; \
	  docker compose up --build --detach agent || code=$$?; \
	  if [ $$code = 0 ]; then docker compose logs --follow agent && docker compose wait agent >/dev/null 2>&1; fi; \
	  bash $(HERE)containers/exited; \
	  docker compose stop agent; \
	  ended=$$(docker compose ps --all --format '{{if eq .State "exited"}}{{.ExitCode}}{{end}}' agent); \
	  case $$ended in 130|137|143) docker compose run --rm charts ;; esac; \
	  docker compose down; exit $${ended:-$$code}

sweep: names .venv/lab
	@$(BIN)/chaoslab sweep $(SETTINGS)

charts: .venv/lab
	@$(BIN)/python charts.py

# Three workers take the files of tests in turn, more than two cores, since many tests wait; those in containers run beside
# them, on two workers, and are shown when all are through. What this make says to the makes that it calls is none of the
# tests' business.
PYTEST = env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest
SHARED = --dist=loadfile --no-loadscope-reorder

test: .venv/dev
	@echo "the tests in containers (tests/live) run beside the others and are reported last"
	@$(MAKE) --no-print-directory --jobs=2 --keep-going test-here test-live; code=$$?; cat tests-live.out; exit $$code

test-here: .venv/dev
	@$(PYTEST) --ignore=tests/live --numprocesses=3 $(SHARED)

test-live: .venv/dev
	@$(PYTEST) tests/live --numprocesses=2 $(SHARED) -o cache_dir=.pytest_cache/live >tests-live.out 2>&1

# A warning ends it: a dead link, a page that the navigation lacks. With --quiet no warning would be counted.
SITE = NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

check: .venv/dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory types contracts
	@$(SITE)

# mypy and the import contracts know nothing of setup.py: here the parts lie within the package, as in an installation.
PARTS = agent flask_tools proxy_manager
LAID  = build/check

laid:
	@rm -rf $(LAID) && mkdir -p $(LAID)/chaoslab && ln -s $(abspath $(wildcard chaoslab/*) $(PARTS)) $(LAID)/chaoslab/

types: laid
	@said=$$($(BIN)/mypy) && code=0 || code=$$?; echo "$$said" | sed 's#^$(LAID)/chaoslab/##'; exit $$code

contracts: laid
	@cd $(LAID) && $(CURDIR)/$(BIN)/lint-imports $(CURDIR)/pyproject.toml --cache-dir $(CURDIR)/.import_linter_cache

# What a release needs: one version, its entry in the change log, a clean tree, a wheel that works in an empty environment.
release-check: .venv/dev
	@$(BIN)/python .ci/release.py

bench: .venv/dev
	@code=0; for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file || code=1; done; exit $$code

docs: .venv/docs
	@$(SITE)
	@echo "the documents are a site: site/index.html"

# Each in an environment of its own: four gigabytes, and ten minutes or more. FRAMEWORKS='openai_sdk mcp_client' makes some of them.
FRAMEWORKS ?= $(basename $(notdir $(wildcard examples/frameworks/agents/*.py)))
frameworks: .venv/lab
	@for name in $(FRAMEWORKS); do \
	  echo "== $$name"; \
	  env=.frameworks/$$name; \
	  test -x $$env/bin/python || $(PYTHON) -m venv $$env || exit 1; \
	  $$env/bin/python -m pip install --quiet --disable-pip-version-check -e . \
	    $$($(BIN)/python examples/frameworks/matrix.py packages $$name) || exit 1; \
	  $$env/bin/python -W ignore examples/frameworks/matrix.py run $$name --into examples/frameworks/results/$$name.json || exit 1; \
	done; \
	$(BIN)/python examples/frameworks/matrix.py page

clean:
	rm -rf .venv .frameworks site build dist *.egg-info logs/* state/* charts/*.png .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache tests-wire.out tests-live.out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
