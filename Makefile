PYTHON ?= python3
PY := .venv/bin/python
LOCK := --generate-hashes --no-emit-index-url --no-header --no-annotate --python-version 3.11

.PHONY: run setup test check fix shots bench soak migrate lock
run: setup
	@exec $(PY) -m agentsite.supervise

setup: .venv/requirements.made
test: .venv/requirements-dev.made
	@$(PY) -m tests.run

check: export AGENTSITE_DATA := .venv/check
check: .venv/requirements-dev.made
	@! git grep -nE '^(<<<<<<<|>>>>>>>) ' -- . ':!Makefile'
	$(PY) -m ruff format --check . && $(PY) -m ruff check .
	$(PY) -m mypy
	.venv/bin/djade --check --target-version 5.2 $$(git ls-files 'templates/*.html')
	$(PY) -m pytest -q -p no:randomly tests/test_floors.py tests/test_templates.py
	$(PY) manage.py makemigrations --check --dry-run

fix: .venv/requirements-dev.made
	$(PY) -m ruff check --fix . && $(PY) -m ruff format .
	.venv/bin/djade --target-version 5.2 $$(git ls-files 'templates/*.html')

shots: .venv/requirements-dev.made
	$(PY) -m tests.browser.shots

bench: .venv/requirements-dev.made
	@$(PY) -m tests.bench

soak: .venv/requirements-dev.made
	@$(PY) -m tests.soak --seed $(or $(SEED),1) --runs $(or $(RUNS),300)

migrate: setup
	$(PY) manage.py makemigrations && $(PY) manage.py migrate

lock:
	uv pip compile -q --upgrade $(LOCK) pyproject.toml -o requirements.lock
	uv pip compile -q --upgrade $(LOCK) pyproject.toml --group dev -o requirements-dev.lock

.venv/%.made: %.lock
	@$(PYTHON) -m agentsite.install $<
