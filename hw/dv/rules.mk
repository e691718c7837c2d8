# Benches and proofs of the RTL.
BENCH ?=
SEED ?= 1

.PHONY: dv
dv: $(READY) ## run the cocotb benches against their models: BENCH=name... for some, SEED=, BINS=1 for each count
	$(PYTHON) dv/run.py --out $(OUT)/dv --seed $(SEED) $(if $(BINS),--bins) $(BENCH)

.PHONY: proofs
proofs: $(READY) ## prove what dv/formal promises, and refute each promise for broken RTL: PROOF=name... for some
	$(PYTHON) dv/formal/prove.py --out $(OUT)/formal $(PROOF)

.PHONY: check
check: ## lint, dv and proofs, unless they have passed on these sources
	@+python3 cached.py --stamp $(OUT)/checked --reads rtl dv/benches dv/models dv/run.py dv/rules.mk $(wildcard dv/formal/*.*) dv/formal/bitwuzla Makefile requirements.txt -- $(MAKE) --no-print-directory lint dv proofs
