# reknit: `make help` lists the targets.

CARGO ?= cargo
PYTHON ?= python3
TARGET := $(or $(CARGO_TARGET_DIR),target)

.PHONY: help build demo test python python-test lint fmt bench instructions doc docs site security transports fuzz soak dist clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 16

build: ## Build the command: target/release/reknit
	$(CARGO) build --release --locked -p reknit

demo: ## Build, compare variants in simulation and with this machine's kernel, and rerun part of the papers
	@$(PYTHON) tools/demo.py $(CARGO)

test: ## Run all tests; those with the kernel need root and TUN
	@$(PYTHON) tools/test.py $(CARGO)

python: ## Build the Python package into target/venv
	@$(PYTHON) tools/python.py

python-test: ## Build the Python package into target/venv and test it
	@$(PYTHON) tools/python.py --test

lint: ## Check format, lints and documentation; every finding is an error
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items --locked
	@if command -v ruff >/dev/null; then ruff check . && ruff format --check .; else echo "ruff is not installed: Python was not checked"; fi
	@$(PYTHON) tools/supply.py check $(CARGO)

fmt: ## Format everything
	$(CARGO) fmt --all
	@if command -v ruff >/dev/null; then ruff format .; fi

bench: ## Measure the cost per ACK and with many flows (study/results), and compare with ns-2 and ns-3 if installed
	$(CARGO) bench --locked -p reknit-variants --bench per_ack
	$(CARGO) bench --locked -p reknit-variants --bench worst
	$(CARGO) bench --locked -p reknit-variants --bench cost > $(TARGET)/cost.md
	@$(PYTHON) study/reknit_study/_generated.py "make bench" study/results/cost.md < $(TARGET)/cost.md
	$(CARGO) bench --locked -p reknit-sim --bench scale > $(TARGET)/scale.md
	@$(PYTHON) study/reknit_study/_generated.py "make bench" study/results/scale.md < $(TARGET)/scale.md
	@$(MAKE) --silent instructions ARGUMENTS="-- --table" > $(TARGET)/instructions.md
	@$(PYTHON) study/reknit_study/_generated.py "make bench" study/results/instructions.md < $(TARGET)/instructions.md
	@$(PYTHON) study/benches/simulators.py $(CARGO)
	@$(PYTHON) study/benches/ns2/compare.py $(CARGO)
	@$(PYTHON) study/benches/ns2/two_paths.py $(CARGO)

instructions: ## Count instructions per segment and packet; fail if a case needs over 3 % more than recorded
	$(CARGO) bench --locked -p reknit-sim -p reknit-stack -p reknit-trace --bench instructions $(ARGUMENTS)

doc: ## Build the documentation of the crates: target/doc
	$(CARGO) doc --workspace --no-deps --locked

docs: ## Generate pages from the sources; `cargo xtask docs --help` lists them
	@$(CARGO) xtask docs
	@$(CARGO) run --quiet --locked -p reknit-study --bin kernel

site: ## Build the documentation as a site: target/site
	@$(PYTHON) tools/site.py

security: ## Attack variants with receivers that lie, and write the tables of docs/design/security.md
	@$(CARGO) run --release --locked --quiet -p xtask -- security

transports: ## Compare quinn, noq and smoltcp with the variants, and write study/results/transports.md; takes up to an hour
	@$(PYTHON) study/transports/run.py

fuzz: ## Search for defects with coverage-guided fuzzers, 10 minutes each; needs nightly and cargo-fuzz
	@$(PYTHON) tools/fuzz.py

soak: ## Simulate 24 hours of mixed traffic for every cause of reordering and every family of variants; takes half an hour
	SOAK_HOURS=24 $(CARGO) test --locked -p reknit-sim --test soak -- --nocapture

dist: ## Build and test the release files: static program, Debian package, wheel, man pages, completions, crates, SBOM
	@$(PYTHON) tools/dist.py $(CARGO)

clean: ## Remove all build products
	$(CARGO) clean
