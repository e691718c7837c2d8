#!/bin/sh
# Builds every fuzz target and runs each for SECONDS_EACH seconds, one after another; prints a line for each.
# Usage: fuzz.sh [CARGO_FUZZ [TARGET...]]
set -u
cd "$(dirname "$0")/.." || exit 2
fuzz=${1:-target/tools/bin/cargo-fuzz}
[ $# -gt 0 ] && shift
seconds=${SECONDS_EACH:-120}
# A target directory set for other builds would be rebuilt with sanitizers: fuzzing has its own.
unset CARGO_TARGET_DIR
# SQLite's C is there twice as far as the sanitizer sees; that is not a finding.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_odr_violation=0"
export RUSTUP_TOOLCHAIN="${FUZZ_TOOLCHAIN:-nightly}"

[ $# -gt 0 ] || set -- $("$fuzz" list)
"$fuzz" build || exit 2
built=fuzz/target/$(rustc -vV | sed -n 's/^host: //p')/release
rm -rf fuzz/target/tmp # folders of runs before
mkdir -p fuzz/target/logs

failed=0
printf '%-12s %11s %8s  %s\n' target executions seconds found
for target in "$@"; do
    log=fuzz/target/logs/$target.log
    mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
    # Seeds are read and never written to; what is learnt goes to the corpus, which git ignores.
    if "$built/$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -artifact_prefix="fuzz/artifacts/$target/" \
        -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 >"$log" 2>&1; then
        found=nothing
    else
        found="$(grep -m1 -aE 'panicked at|ERROR: |SUMMARY' "$log" || echo failed) (see $log)"
        failed=1
    fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    printf '%-12s %11s %8s  %s\n' "$target" "${runs:--}" "$seconds" "$found"
done
exit $failed
