#!/bin/sh
# What becomes target/peers/phe and heu: the peer of that name in its virtual environment.
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../tools/peers/venv/bin/python" "$here/../../benches/peers/python/$(basename "$0")_peer.py" "$@"
