#!/bin/sh
# Says which of the named tools are missing and where each comes from; fails if any is.
missing=0
for tool in "$@"; do
    case $tool in
    nightly)
        rustup toolchain list 2>/dev/null | grep -q '^nightly' && continue
        from="run: rustup toolchain install nightly --profile minimal" ;;
    *)
        command -v "$tool" >/dev/null 2>&1 && continue
        case $tool in
        cargo | rustup) from="install Rust from https://rustup.rs" ;;
        cargo-fmt) from="run: rustup component add rustfmt" ;;
        cargo-clippy) from="run: rustup component add clippy" ;;
        cc | c++) from="install your system's C and C++ compilers (Debian: build-essential; macOS: xcode-select --install)" ;;
        python3) from="install Python 3.9 or later (https://www.python.org)" ;;
        m4) from="install your system's m4, which GMP builds with (Debian: m4)" ;;
        *) from="install it" ;;
        esac ;;
    esac
    echo "missing: $tool; $from" >&2
    missing=1
done
exit $missing
