#!/bin/sh
# Builds GMP for this processor, from the sources that gmp-mpfr-sys carries, and the peer with it: build.sh FOLDER
#
# Left to itself gmp-mpfr-sys builds GMP for every x86-64 processor. That one chooses its inner loops by a list of models
# (GMP 6.3.0, mpn/x86_64/fat/fat.c), which ends with Intel's Kaby Lake and AMD's family 19h; on later ones it runs the
# slowest. A peer is measured at its best.
set -eu

manifest=$(dirname "$0")/Cargo.toml
mkdir -p "$1"
build=$(cd "$1" && pwd)

if ! test -f "$build/gmp/lib/libgmp.a"; then
    crate=$(cargo metadata --locked --format-version 1 --manifest-path "$manifest" | python3 -c '
import json, os, sys
packages = json.load(sys.stdin)["packages"]
print(*(os.path.dirname(p["manifest_path"]) for p in packages if p["name"] == "gmp-mpfr-sys"))')
    rm -rf "$build/gmp-objects"
    mkdir "$build/gmp-objects"
    (
        cd "$build/gmp-objects"
        echo "building GMP for this processor (a minute; log: $build/gmp.log)" >&2
        sh "$crate"/gmp-*-c/configure --disable-shared --with-pic --prefix="$build/gmp" &&
            make -j "$(getconf _NPROCESSORS_ONLN)" &&
            make install
    ) >"$build/gmp.log" || {
        tail -n 5 "$build/gmp.log" >&2
        exit 1
    }
    rm -rf "$build/gmp-objects"
fi

C_INCLUDE_PATH=$build/gmp/include LIBRARY_PATH=$build/gmp/lib cargo build --quiet --release --locked \
    --features native --manifest-path "$manifest" --target-dir "$build/cargo"
