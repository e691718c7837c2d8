# The pages' drawings and timing diagrams: the latter from runs of the chip, one build as the thesis has it and one whose
# accumulator is cut into chunks.
TRACES := trace trace-deep
PARAMETERS_trace := -GBITS=0
PARAMETERS_trace-deep := -GBITS=24

.PHONY: doc
doc: $(TRACES:%=$(OUT)/%.vcd) $(OUT)/cells.vcd $(OUT)/sifo.vcd ## draw the pages' diagrams anew, timing from simulated runs, and check the pages against the RTL
	$(PYTHON) doc/drawings.py doc/img
	$(PYTHON) doc/waves.py $(TRACES:%=$(OUT)/%.vcd) doc/img
	$(PYTHON) doc/cells.py $(OUT)/cells.vcd doc/img
	$(PYTHON) doc/sifo.py $(OUT)/sifo.vcd doc/img
	$(PYTHON) doc/check.py

$(TRACES:%=$(OUT)/%.vcd): $(OUT)/%.vcd: $(SOURCES) rtl/sim/board.cpp doc/run.py doc/trace.vlt dv/benches/reference.py doc/rules.mk | $(READY)
	rm -rf $(OUT)/$*
	mkdir -p $(OUT)/$*
	$(VERILATOR) --cc --trace --trace-structs --x-assign fast --x-initial fast --noassert --quiet-stats \
	  --prefix Vboard --top-module onionchopper_board -GHALF_BEATS=1024 -GC_BEATS=512 $(PARAMETERS_$*) --Mdir $(OUT)/$* \
	  $(SEARCH) rtl/lint.vlt doc/trace.vlt $(RTL) dv/models/onionchopper_board.sv
	$(CXX) -std=c++17 -O0 -fPIC -shared -DVERILATOR=1 -DVM_TRACE=1 -DVM_TRACE_VCD=1 -DBOARD_TRACE -I$(OUT)/$* \
	  -isystem $(VERILATOR_ROOT)/include -isystem $(VERILATOR_ROOT)/include/vltstd -o $(OUT)/lib$*.so \
	  rtl/sim/board.cpp $(OUT)/$*/*.cpp $(VERILATOR_ROOT)/include/verilated.cpp \
	  $(VERILATOR_ROOT)/include/verilated_threads.cpp $(VERILATOR_ROOT)/include/verilated_vcd_c.cpp -pthread
	$(PYTHON) doc/run.py $(OUT)/lib$*.so $@

# SIFO's bank of AND cells.
$(OUT)/cells.vcd: $(SOURCES) doc/cells.cpp doc/rules.mk | $(READY)
	rm -rf $(OUT)/cells
	mkdir -p $(OUT)/cells
	$(VERILATOR) --cc --trace --x-assign fast --x-initial fast --noassert --quiet-stats --prefix Vcells --top-module sf_cells \
	  -GCELLS=3 -GTAG=8 --Mdir $(OUT)/cells $(SEARCH) rtl/lint.vlt rtl/sifo/sf_cells.sv
	$(CXX) -std=c++17 -O0 -DVERILATOR=1 -DVM_TRACE=1 -DVM_TRACE_VCD=1 -I$(OUT)/cells -isystem $(VERILATOR_ROOT)/include \
	  -isystem $(VERILATOR_ROOT)/include/vltstd -o $(OUT)/cells/run doc/cells.cpp $(OUT)/cells/Vcells*.cpp \
	  $(VERILATOR_ROOT)/include/verilated.cpp $(VERILATOR_ROOT)/include/verilated_threads.cpp \
	  $(VERILATOR_ROOT)/include/verilated_vcd_c.cpp -pthread
	$(OUT)/cells/run $@

# SIFO's board and two batches.
$(OUT)/sifo.vcd: $(SOURCES) doc/sifo.cpp doc/rules.mk | $(READY)
	rm -rf $(OUT)/sifo-trace
	mkdir -p $(OUT)/sifo-trace
	$(VERILATOR) --cc --trace --x-assign fast --x-initial fast --noassert --quiet-stats --prefix Vsifo --top-module sifo_board \
	  -GANDS=2 -GXORS=2 -GPLACES=16 -GWORDS=4 --Mdir $(OUT)/sifo-trace $(SEARCH) rtl/lint.vlt $(RTL) dv/models/sifo_board.sv
	$(CXX) -std=c++17 -O0 -DVERILATOR=1 -DVM_TRACE=1 -DVM_TRACE_VCD=1 -I$(OUT)/sifo-trace -isystem $(VERILATOR_ROOT)/include \
	  -isystem $(VERILATOR_ROOT)/include/vltstd -o $(OUT)/sifo-trace/run doc/sifo.cpp $(OUT)/sifo-trace/Vsifo*.cpp \
	  $(VERILATOR_ROOT)/include/verilated.cpp $(VERILATOR_ROOT)/include/verilated_threads.cpp \
	  $(VERILATOR_ROOT)/include/verilated_vcd_c.cpp -pthread
	$(OUT)/sifo-trace/run $@
