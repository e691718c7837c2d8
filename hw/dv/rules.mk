# Benches and proofs of the RTL.
BENCH ?=
SEED ?= 1

.PHONY: dv
dv: $(READY) ## run the cocotb benches against their models: BENCH=name... for some, SEED=, BINS=1 for each count
	$(PYTHON) dv/run.py --out $(OUT)/dv --seed $(SEED) $(if $(BINS),--bins) $(BENCH)
