#!/bin/sh
# Builds the emp-toolkit peer against its three libraries where they are built already: build.sh EMP OUT
#
# EMP is a folder that holds emp-tool, emp-ot and emp-sh2pc, each with its build in `build`; benches/peers/README.md has
# the commits that go together.
set -eu

emp=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2"
for library in emp-tool emp-ot emp-sh2pc; do
    test -d "$emp/$library/build" || {
        echo "no $emp/$library/build: build emp-toolkit's libraries first, as benches/peers/README.md says" >&2
        exit 1
    }
done
cmake -S "$here" -B "$2" -DCMAKE_BUILD_TYPE=Release "-DPEER=emp-toolkit (emp-tool, emp-ot, emp-sh2pc), May 2026" \
    "-Demp-tool_DIR=$emp/emp-tool/build" "-Demp-ot_DIR=$emp/emp-ot/build" "-Demp-sh2pc_DIR=$emp/emp-sh2pc/build" \
    >"$2/cmake.log"
cmake --build "$2" >"$2/build.log" 2>&1 || {
    tail -n 5 "$2/build.log" >&2
    exit 1
}
