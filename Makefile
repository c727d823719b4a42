# reknit: `make help` lists the targets.

CARGO ?= cargo
PYTHON ?= python3
TARGET := $(or $(CARGO_TARGET_DIR),target)

.PHONY: help build demo test python python-test lint fmt bench doc docs dist clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 16

build: ## Build the command: target/release/reknit
	$(CARGO) build --release --locked -p reknit

demo: ## Build, compare variants in simulation and against this machine's kernel, rerun part of the papers
	@$(PYTHON) tools/demo.py $(CARGO)

test: ## Run all tests; those against the kernel need root and TUN
	@$(PYTHON) tools/test.py $(CARGO)

python: ## Build the Python package into target/venv
	@$(PYTHON) tools/python.py

python-test: ## Test the Python package alone, there
	@$(PYTHON) tools/python.py --test

lint: ## Check format, lints and documentation; everything is an error
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items --locked
	@if command -v ruff >/dev/null; then ruff check . && ruff format --check .; else echo "ruff is not installed: Python was not checked"; fi

fmt: ## Format everything
	$(CARGO) fmt --all
	@if command -v ruff >/dev/null; then ruff format .; fi

bench: ## Cost per ACK (docs/cost.md), many flows (docs/scale.md), and a comparison with ns-2 where that is installed
	$(CARGO) bench --locked -p reknit-variants --bench per_ack
	$(CARGO) bench --locked -p reknit-variants --bench cost > $(TARGET)/cost.md
	@mv $(TARGET)/cost.md docs/cost.md && cat docs/cost.md
	$(CARGO) bench --locked -p reknit-sim --bench scale > $(TARGET)/scale.md
	@mv $(TARGET)/scale.md docs/scale.md && cat docs/scale.md
	@$(PYTHON) benches/ns2/compare.py $(CARGO)

doc: ## Build the documentation of the crates: target/doc
	$(CARGO) doc --workspace --no-deps --locked

docs: ## Write docs/algorithms from the headers of the algorithms' files, docs/causes.md and docs/pictures
	@$(CARGO) xtask docs

dist: ## Build and try what is shipped: static program, Debian package, wheel, man pages, completions, crates
	@$(PYTHON) tools/dist.py $(CARGO)

clean: ## Remove what was built
	$(CARGO) clean
