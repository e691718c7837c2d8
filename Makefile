# What a person does with this repository. `make help` lists it.
.POSIX:

.PHONY: help demo test lint fuzz bench larger-than-memory constant-time tools-build tools-lint tools-fuzz

TOOLS = target/tools
# Seconds for each fuzz target, and how many lookups the demo compares with SQL.
SECONDS = 120
LOOKUPS = 100

help:
	@echo "make demo     build blindcore, a table of Unicode's characters, and look some of them up in private"
	@echo "make test     every test: the workspace's, the hardware's benches and proofs"
	@echo "make lint     format, clippy, documentation, licences of dependencies"
	@echo "make fuzz     every fuzz target, SECONDS=$(SECONDS) each (needs rustup and a nightly toolchain)"
	@echo "make bench    speeds of this machine, as JSON: lookup, then sum beside its peers"
	@echo "make larger-than-memory   a server with a quarter of its database's size as memory (as root)"
	@echo "make constant-time   whether time shows secrets, of decryption and of circuits"

demo: tools-build
	@python3 scripts/demo.py --lookups $(LOOKUPS)

test: tools-build
	$(MAKE) -C hw -j 2 libraries
	BLINDCORE_RTL=$$PWD/target/hw cargo test --workspace --locked
	$(MAKE) -C hw lint dv proofs

lint: tools-lint
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	test -x $(TOOLS)/bin/cargo-deny || cargo install --quiet --locked --debug cargo-deny --root $(TOOLS)
	$(TOOLS)/bin/cargo-deny check bans licenses sources

fuzz: tools-fuzz
	test -x $(TOOLS)/bin/cargo-fuzz || cargo install --quiet --locked cargo-fuzz --root $(TOOLS)
	SECONDS_EACH=$(SECONDS) sh scripts/fuzz.sh $(TOOLS)/bin/cargo-fuzz

bench: tools-build peers
	@cargo run --quiet --release --locked --bin blindcore -- bench lookup --json
	@cargo run --quiet --release --locked --bin blindcore -- bench sum --peers target/peers --json

larger-than-memory: tools-build
	@python3 scripts/larger_than_memory.py

constant-time: tools-build
	@cargo run --quiet --release --locked -p blindcore-sum --example constant_time
	@cargo run --quiet --release --locked -p blindcore-circuit --example constant_time

# One line for each tool that is missing, with where it comes from.
tools-build:
	@sh scripts/tools.sh cargo cc c++ python3

tools-lint:
	@sh scripts/tools.sh cargo cc cargo-fmt cargo-clippy

tools-fuzz:
	@sh scripts/tools.sh cargo cc c++ rustup nightly

include benches/peers/rules.mk
