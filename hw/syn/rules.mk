# Synthesis to standard cells with timing and power, place and route on an FPGA, and the table of what they gave.
BLOCK ?= oc_compute_unit
LIB ?= /usr/share/qflow/tech/osu018/osu018_stdcells.lib
GIVEN = $(if $(BITS),BITS=$(BITS)) $(PARAMETERS)

.PHONY: syn
syn: $(READY) ## a block to standard cells: BLOCK=, BITS=, PARAMETERS=, BLACK_BOXES=, LIB=file.lib[.gz]
	$(PYTHON) syn/synthesise.py --block $(BLOCK) --lib $(LIB) $(BLACK_BOXES:%=--black-box %) $(GIVEN)
