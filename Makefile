# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later

# The name of python3 on this machine; 3.11 or newer. The environments in .venv are made with the versions they need.
PYTHON ?= python3
PY313 := .venv/py313/bin

CLUSTER := $(PY313)/python -m tools.cluster
ENGINE := $(PY313)/python -m tools.engine
# uv comes last on the PATH, where nox looks for it.
NOX := PATH="$$PATH:$(CURDIR)/.venv/bin" $(PY313)/nox --non-interactive

.PHONY: help
help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

.PHONY: environments
environments: ## The Python environments in .venv (every other target sees to them itself)
	@$(PYTHON) requirements/install.py

.PHONY: demo
demo: ## A sandbox in a container of this machine (DOCKER_HOST: of that engine), and playbooks/demo.yml in it
	@$(PYTHON) requirements/install.py py313
	@$(ENGINE) up
	@eval "$$($(ENGINE) env)" && NAMZU_SANDBOX_BACKEND=container ANSIBLE_CONFIG=ansible.cfg $(PY313)/ansible-playbook playbooks/demo.yml
	@echo 'The engine is still up, so the next run is quick. Take it down with: make down'

.PHONY: cluster-demo
cluster-demo: up ## A Kubernetes cluster, and playbooks/demo.yml on it; the cluster stays
	@eval "$$($(CLUSTER) env)" && ANSIBLE_CONFIG=ansible.cfg $(PY313)/ansible-playbook playbooks/demo.yml
	@echo 'The cluster is still up, so the next run is quick. Take it down with: make down'

.PHONY: expected
expected: environments ## Write the files again that tests compare with the product's messages and tables; read the diff
	@NAMZU_WRITE_EXPECTED=1 $(PY313)/pytest -q tests/unit/test_reasons.py tests/unit/front/options/test_refused.py tests/faults/test_messages.py && git --no-pager diff --stat

# What `make dist` makes; elsewhere with DIST=folder.
DIST ?= build/dist
# Ansible finds the collection that was installed there and kubernetes.core, and nothing else.
FROM_DIST := ANSIBLE_COLLECTIONS_PATH='$(abspath $(DIST))' ANSIBLE_COLLECTIONS_SCAN_SYS_PATH=false

.PHONY: dist
dist: collection up ## Build the collection's tarball, install it into an empty path, and run the demo from there
	@eval "$$($(CLUSTER) env)" && $(FROM_DIST) ANSIBLE_CONFIG=ansible.cfg $(PY313)/ansible-playbook namzu.sandbox.demo
	@echo 'That was $(DIST)/ansible_collections/namzu/sandbox, from this tarball:' && ls $(DIST)/*.tar.gz

.PHONY: collection
collection: environments ## The collection's tarball, and a path with nothing but that and kubernetes.core installed
	@mkdir -p '$(DIST)'
	@rm -rf '$(DIST)'/ansible_collections '$(DIST)'/namzu-sandbox-*.tar.gz
	@$(PY313)/ansible-galaxy collection build --output-path '$(DIST)' >/dev/null
	@$(FROM_DIST) $(PY313)/ansible-galaxy collection install --offline --no-deps --collections-path '$(DIST)' '$(DIST)'/namzu-sandbox-*.tar.gz >/dev/null
	@ln -s '$(abspath .venv/py313)'/lib/python3.13/site-packages/ansible_collections/kubernetes '$(DIST)'/ansible_collections/

.PHONY: wheel
wheel: environments ## The wheel namzu-sandbox for Python programs, in build/dist
	@.venv/bin/uv build --quiet --wheel --out-dir '$(DIST)' . && ls '$(DIST)'/*.whl

.PHONY: test
test: environments ## All tests that need neither Go nor Kubernetes: lint, unit, sanity, containers
	@$(NOX) --tags test

.PHONY: cluster-test
cluster-test: environments ## All tests that need the cluster: lifecycle, integration, molecule, truth, bench
	@$(NOX) --tags cluster-test

.PHONY: lint
lint: environments ## Formatting, types, layers, licences, roles, changelog, documentation
	@$(NOX) --tags lint

.PHONY: unit
unit: environments ## Unit and fault tests on both Pythons
	@$(NOX) --tags unit

.PHONY: sanity
sanity: environments ## ansible-test sanity, without exceptions
	@$(NOX) --tags sanity

.PHONY: integration
integration: environments ## Tests on a cluster, on both Pythons
	@$(NOX) --tags integration

.PHONY: bench
bench: up ## Compare with kubernetes.core and upstream's client, side by side
	@eval "$$($(CLUSTER) env)" && $(PY313)/python -m tests.bench

.PHONY: container-bench
container-bench: ## Compare the container backend with bare requests and with community.docker, side by side
	@$(PYTHON) requirements/install.py py313
	@$(ENGINE) up
	@eval "$$($(ENGINE) env)" && $(PY313)/python -m tests.bench container_acquire container_play container_connection

.PHONY: up
up: environments ## Start the cluster (KUBECONFIG or NAMZU_CLUSTER=existing: use yours)
	@$(CLUSTER) up

.PHONY: down
down: ## Take down the engine of the demo and the cluster, and all that they left on this machine
	@$(PYTHON) requirements/install.py py313
	@$(ENGINE) down
	@$(CLUSTER) down

.PHONY: status
status: environments ## What is running
	@$(CLUSTER) status

.PHONY: env
env: environments ## Shell exports for the cluster: eval "$(make -s env)"
	@$(CLUSTER) env

.PHONY: pins
pins: ## Write requirements/*.txt anew with the newest versions
	@$(PYTHON) requirements/install.py --pin

.PHONY: clean
clean: ## Remove environments, caches and build folders (a running cluster is taken down first)
	@if [ -x $(PY313)/python ] && [ -f tools/cluster/__main__.py ]; then $(ENGINE) down; $(CLUSTER) down; fi
	@rm -rf .venv build .cache .ansible .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .nox
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
