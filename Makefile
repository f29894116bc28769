# Two commands are all: `make demo` (embedded, in a minute) and `make test` (on real parts).
# `make help` lists the others, by the comments behind ## below.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
K8S ?= 1.37
NODE ?= fake
REPLICAS ?= 1
DEVICES ?= 0
MINUTES ?= 10
RUNS ?= 3
SEED ?= 200000
HISTORIES ?= 200
export K8S

.PHONY: demo help preemption-demo placement-demo queue-demo pictures build test test-release test-frameworks test-operators test-node chaos fuzz honest test-unit lint cluster cluster-down golden generate docs release dist sbom bench bench-growth clean

demo: $(VENV)/runtime.stamp  ## the webhook over TLS, the example workloads sent to it, what comes back
	@$(BIN)/gpu-tiers demo

help:  ## the targets, each with what it does
	@awk -F ':.*## *' '/^[a-z][a-z-]*:.*## / {printf "make %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

preemption-demo: $(VENV)/dev.stamp  ## what a preemption costs, with hooks and without, on a real node (root; installs Debian packages)
	@$(BIN)/python -m demonstration docs/pictures/preemption-timeline.json
	@$(BIN)/python docs/generate.py

placement-demo: $(VENV)/dev.stamp  ## where gangs come to lie without placement and with Pack, on fake nodes in racks; 4 minutes
	@$(BIN)/python -m demonstration.placement docs/pictures/placement.json
	@$(BIN)/python docs/generate.py

queue-demo: $(VENV)/dev.stamp  ## ten gangs that wait for eight GPUs, on fake nodes, and one that is evicted; 1 minute
	@$(BIN)/python -m demonstration.queue docs/pictures/queue.json
	@$(BIN)/python docs/generate.py

pictures: $(VENV)/dev.stamp  ## terminals and the page as the docs show them, from a cluster of fake nodes; 2 minutes, installs Chromium
	@$(BIN)/python -m demonstration.pictures docs/pictures

build: $(VENV)/dev.stamp  ## what the tests' clusters are made of; what can't be had is named, and its tests are skipped
	@$(BIN)/python -m installation build || true

build-release: $(VENV)/dev.stamp  ## that, and what make test-release needs beside it
	@$(BIN)/python -m installation build --all || true

test: lint build  ## linters, then all tests but the next ones, on a real control plane and as root (Debian) on a real node
	$(BIN)/python -m pytest -m "not release and not frameworks" --ignore=tests/operators --numprocesses=auto --dist=loadscope --durations=20

test-release: build-release  ## what a release is tested with beside that: the other Kubernetes, Helm 4, browser, Prometheus, frameworks
	$(BIN)/python -m pytest -m release --ignore=tests/operators --numprocesses=2 --dist=loadscope --durations=20

test-frameworks: $(VENV)/dev.stamp  ## the training examples on torch, Lightning, Transformers and JAX (installs 12 GB)
	$(BIN)/python -m pytest tests/frameworks --numprocesses=2

test-operators: $(VENV)/dev.stamp  ## JobSet, LWS, KubeRay, Kueue, Volcano, KAI, Knative and Kubeflow's operators under the webhook (builds 20 minutes)
	@$(BIN)/python -m localcluster.operators || true
	$(BIN)/python -m pytest tests/operators --durations=10

test-node: $(VENV)/dev.stamp  ## of the tests, hooks, preemption and the chart on a real node (installs Debian packages)
	$(BIN)/python -m pytest tests/node

chaos: $(VENV)/dev.stamp  ## replicas killed and paused under creates, at random; prints seeds, stops at an overdrawn quota
	@$(BIN)/python -m tests.apiserver.faults --minutes $(MINUTES)

fuzz: $(VENV)/dev.stamp  ## reviews spoiled at random, through the whole decision; what breaks a rule stays in tests/fuzz/corpus
	@$(BIN)/python -m tests.fuzz --minutes $(MINUTES)

honest: $(VENV)/dev.stamp  ## random lives of honest users over a simulated cluster, by seed; prints whom gpu-tiers has wronged
	@$(BIN)/python -m tests.honest --seed $(SEED) --histories $(HISTORIES)

test-unit: $(VENV)/dev.stamp  ## the fast subset, without a cluster
	$(BIN)/python -m pytest tests/unit tests/property tests/fuzz tests/ledger --numprocesses=2 --dist=worksteal

lint: $(VENV)/dev.stamp  ## ruff, mypy --strict, import-linter, vulture, hadolint, helm lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vulture
	$(BIN)/hadolint Dockerfile
	$(BIN)/helm lint --strict charts/gpu-tiers

cluster: $(VENV)/dev.stamp  ## a local control plane with the chart installed; says where its page is; last line: export KUBECONFIG=…
	@$(BIN)/python -m installation up --kubernetes $(K8S) --node $(NODE) --replicas $(REPLICAS) --devices $(DEVICES)

cluster-down: $(VENV)/dev.stamp  ## stops that cluster
	@$(BIN)/python -m installation down

golden: $(VENV)/dev.stamp  ## what is said of each golden manifest in tests/workloads/golden, written anew
	@$(BIN)/python -m tests.workloads.golden

generate: $(VENV)/dev.stamp  ## the files that are made from one source: the chart's presets, reference docs
	@$(BIN)/python docs/generate.py

docs: $(VENV)/dev.stamp  ## the pages as a site in build/site, made without a network; a link that leads nowhere is an error
	@PYTHONPATH=docs $(BIN)/python -m website

release: $(VENV)/dev.stamp  ## VERSION=0.2.0: this version everywhere, and the changelog cut; commits nothing
	@PYTHONPATH=docs $(BIN)/python -m releasing $(VERSION)
	@$(BIN)/python docs/generate.py

dist: $(VENV)/dev.stamp  ## sdist and wheel of the CLI in dist/, with a README whose links stand alone
	@PYTHONPATH=docs $(BIN)/python -m releasing archives

sbom: requirements/runtime.txt $(VENV)-release/stamp  ## what the image and the wheel hold, as CycloneDX, in build/sbom.cdx.json
	@mkdir -p build
	@PYTHONWARNINGS=ignore $(VENV)-release/bin/cyclonedx-py requirements $< --pyproject pyproject.toml --output-reproducible -o build/sbom.cdx.json

$(VENV)-release/stamp: requirements/release.txt
	@test -d $(VENV)-release || $(PYTHON) -m venv $(VENV)-release
	@$(VENV)-release/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(VENV)/runtime.stamp: requirements/runtime.txt pyproject.toml
	@echo "setting up $(VENV): what gpu-tiers needs to run"
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "gpu-tiers needs Python 3.11 or newer: make PYTHON=python3.x …")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/runtime.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/dev.stamp: requirements/dev.txt $(VENV)/runtime.stamp
	@echo "setting up $(VENV): what the tests need"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

clean:  ## takes away all that these commands made in this folder
	rm -rf $(VENV) $(VENV)-release build dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

bench: $(VENV)/dev.stamp  ## the tables of docs/performance.md, measured here and now in 25 minutes; those of creates, of RUNS=3, go into the page
	@PYTHONPATH=. $(BIN)/python bench/in_process.py
	@echo
	@PYTHONPATH=. $(BIN)/python bench/over_the_wire.py
	@echo
	@PYTHONPATH=. $(BIN)/python bench/review_folder.py
	@echo
	@PYTHONPATH=. $(BIN)/python bench/startup.py
	@echo
	@PYTHONPATH=.:docs $(BIN)/python bench/creates.py --runs $(RUNS) --keep docs/pictures/creates.json
	@$(BIN)/python docs/generate.py

bench-growth: $(VENV)/dev.stamp  ## the tables with 20,000 and 50,000 pods, which take minutes
	@PYTHONPATH=. $(BIN)/python bench/growth.py
	@echo
	@PYTHONPATH=. $(BIN)/python bench/audit.py
	@echo
	@PYTHONPATH=. $(BIN)/python bench/reports.py
	@echo
	@PYTHONPATH=.:docs $(BIN)/python bench/hold.py
