# Synthesis to standard cells with timing and power, place and route on an FPGA, and the table of what they gave.
BLOCK ?= oc_compute_unit
LIB ?= /usr/share/qflow/tech/osu018/osu018_stdcells.lib
GIVEN = $(if $(BITS),BITS=$(BITS)) $(PARAMETERS)

.PHONY: syn
syn: $(READY) ## a block to standard cells: BLOCK=, BITS=, PARAMETERS=, BLACK_BOXES=, LIB=file.lib[.gz]
	$(PYTHON) syn/synthesise.py --block $(BLOCK) --lib $(LIB) $(BLACK_BOXES:%=--black-box %) $(GIVEN)

.PHONY: fpga
fpga: $(READY) ## a block placed and routed on an ECP5: BLOCK=, BITS=, PARAMETERS=
	$(PYTHON) syn/fpga.py --block $(BLOCK) $(GIVEN)

.PHONY: alm
alm: $(READY) ## a block in Stratix V's ALMs, before placement: BLOCK=, BITS=, PARAMETERS=
	$(PYTHON) syn/alm.py --block $(BLOCK) $(GIVEN)

.PHONY: syn-table
syn-table: $(READY) ## the results of syn, fpga and alm as a table
	@$(PYTHON) syn/table.py

.PHONY: syn-check
syn-check: $(READY) ## simulate the netlist that `make syn` made beside its RTL: the same words as for syn
	$(PYTHON) syn/check.py --block $(BLOCK) --lib $(LIB) $(GIVEN)
