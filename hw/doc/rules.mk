# Timing diagrams of the pages, drawn from a run of the chip.
.PHONY: doc
doc: $(OUT)/trace.vcd ## draw the pages' timing diagrams anew, from a simulated run
	$(PYTHON) doc/waves.py $(OUT)/trace.vcd doc/img

$(OUT)/trace.vcd: $(SOURCES) rtl/sim/board.cpp doc/run.py dv/benches/reference.py doc/rules.mk | $(READY)
	rm -rf $(OUT)/board-trace
	mkdir -p $(OUT)/board-trace
	$(VERILATOR) --cc --trace -O3 --x-assign fast --x-initial fast --noassert --quiet-stats --prefix Vboard \
	  --top-module onionchopper_board -GHALF_BEATS=1024 -GC_BEATS=512 --Mdir $(OUT)/board-trace $(SEARCH) rtl/lint.vlt \
	  $(RTL) dv/models/onionchopper_board.sv
	$(CXX) -std=c++17 -O1 -fPIC -shared -DVERILATOR=1 -DVM_TRACE=1 -DVM_TRACE_VCD=1 -DBOARD_TRACE -I$(OUT)/board-trace \
	  -isystem $(VERILATOR_ROOT)/include -isystem $(VERILATOR_ROOT)/include/vltstd -o $(OUT)/libboard-trace.so \
	  rtl/sim/board.cpp $(OUT)/board-trace/*.cpp $(VERILATOR_ROOT)/include/verilated.cpp \
	  $(VERILATOR_ROOT)/include/verilated_threads.cpp $(VERILATOR_ROOT)/include/verilated_vcd_c.cpp -pthread
	$(PYTHON) doc/run.py $(OUT)/libboard-trace.so $@
