#!/bin/sh
# The database servers that tests of sources start: says where they are, or installs Debian's packages.
# Tests that don't find one are skipped and say so.
#
#   scripts/test_servers.sh              which are there; exit code 1 where one is missing
#   scripts/test_servers.sh --install    apt-get install those that are missing (as root)
set -eu

postgresql() { ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null | tail -n 1 || true; }
mariadb() { command -v mariadbd || ls /usr/sbin/mariadbd 2>/dev/null || true; }

missing=
[ -n "$(postgresql)" ] || command -v initdb >/dev/null || missing="$missing postgresql"
[ -n "$(mariadb)" ] || missing="$missing mariadb-server"
if [ -n "$missing" ] && [ "${1:-}" = --install ]; then
    apt-get update
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends $missing
    missing=
fi
echo "PostgreSQL: $(postgresql)"
echo "MariaDB:    $(mariadb)"
if [ -n "$missing" ]; then
    echo "missing:$missing; install with: $0 --install" >&2
    exit 1
fi
