#!/bin/sh
# What becomes target/peers/phe: the peer in its virtual environment.
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../tools/peers/venv/bin/python" "$here/../../benches/peers/phe/peer.py" "$@"
