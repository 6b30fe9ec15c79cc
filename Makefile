# Two commands are enough: `make run` shows the system at work, `make test` proves it.
# Both install what is missing first.

SHELL := /bin/bash
PY := .venv/bin/python
PYTEST_ARGS ?=
SCHEDULES ?= 20000

.PHONY: help setup run test lint types format bench explore reproduce docs wheel clean

help: ## list the commands
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 18

setup:
	@bash scripts/setup.sh

run: setup ## the main job: a market on the embedded broker, matched, ordered and audited on Spark
	@.venv/bin/inorder run examples/market.toml

test: setup ## every test (about a quarter of an hour on two cores)
	@$(PY) -m pytest $(PYTEST_ARGS)

lint: setup ## style
	@.venv/bin/ruff check . && .venv/bin/ruff format --check .

types: setup ## types
	@.venv/bin/mypy

format: setup ## write the style
	@.venv/bin/ruff check --fix . && .venv/bin/ruff format .

bench: setup ## speed, as ratios side by side in one run
	@$(PY) -m benches

explore: setup ## random schedules with faults, of each mode: SCHEDULES=20000 together
	@set -e; share() { echo $$(( $(SCHEDULES) * $$1 / 100 )); }; \
	for order in mode=hold mode=tag mode=tag,buffer=0 mode=tag,buffer=4,ttl=0.3 \
	  mode=hold,swaps=on,metric=f,alpha=1,beta=0.05,change_timeout=0.5 \
	  mode=tag,swaps=on,report_every=0.2,change_timeout=0.5; do \
	  echo "$$order"; \
	  .venv/bin/inorder explore examples/explore.toml --order $$order --schedules $$(share 2); \
	done; \
	for order in mode=hold mode=tag mode=tag,buffer=0; do \
	  echo "content brokers $$order"; \
	  .venv/bin/inorder explore examples/explore-content.toml --order $$order \
	    --schedules $$(share 6); \
	done; \
	for order in mode=hold mode=tag mode=tag,buffer=0 mode=hold,path=forest; do \
	  echo "silences $$order"; \
	  .venv/bin/inorder explore examples/explore-silence.toml --order $$order \
	    --schedules $$(share 17); \
	done; \
	echo hours; .venv/bin/inorder explore examples/explore-hours.toml --schedules $$(share 2); \
	echo fifo; .venv/bin/inorder explore examples/explore-fifo.toml --schedules $$(share 100); \
	: "a subscriber that crashes may get an event again: docs/fifo.md, docs/content.md"; \
	for order in guarantee=none guarantee=fifo; do \
	  echo "content brokers $$order"; \
	  .venv/bin/inorder explore examples/explore-content.toml --order $$order \
	    --promises accepted,filter --schedules $$(share 5); \
	done
	@echo content; $(PY) -m tests.content.network --trees 3000
	@$(PY) -m tests.bus.test_virtual --runs $(SCHEDULES)
	@echo cube; $(PY) -m tests.protocols.cube.world --schedules $(SCHEDULES)
	@set -e; for kind in "" --neighbours --clocks; do \
	  echo "cube, crashes $$kind"; \
	  $(PY) -m tests.protocols.cube.storm $$kind --schedules $$(( $(SCHEDULES) / 10 )); \
	done
	@echo "cube, everything drawn"; \
	  .venv/bin/inorder explore examples/explore-cube.toml --schedules $$(( $(SCHEDULES) / 50 ))

reproduce: setup ## the papers' figures, theirs beside ours (three to four hours; QUICK=--quick: minutes)
	@$(PY) -m experiments.total $(QUICK)
	@$(PY) -m experiments.fifo $(QUICK)
	@$(PY) -m experiments.content $(QUICK)
	@$(PY) -m experiments.cube $(QUICK)

docs: setup ## run every example of the docs
	@$(PY) -m pytest tests/docs $(PYTEST_ARGS)

wheel: setup ## build the wheel into dist/
	@.tools/uv/bin/uv build --quiet --wheel && ls dist/*.whl

clean: ## remove what was built and run, keep the environment
	@rm -rf out dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse
