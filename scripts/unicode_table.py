"""The table of the demo and of the test of ten thousand lookups: Unicode's named characters, as Python's
`unicodedata` has them (see README on their licence). Usage: unicode_table.py OUT.sqlite"""

import os
import sqlite3
import sys
import unicodedata

TABLE = "characters"
COLUMNS = {
    "code": "TEXT PRIMARY KEY",
    "char": "TEXT",
    "name": "TEXT",
    "category": "TEXT",
    "bidirectional": "TEXT",
    "combining": "INTEGER",
    "east_asian_width": "TEXT",
    "mirrored": "INTEGER",
    "decomposition": "TEXT",
    "numeric": "REAL",
    "uppercase": "TEXT",
    "lowercase": "TEXT",
}


def rows():
    for number in range(sys.maxunicode + 1):
        c = chr(number)
        name = unicodedata.name(c, None)
        if name is None:
            continue
        yield (
            f"U+{number:04X}", c, name, unicodedata.category(c), unicodedata.bidirectional(c),
            unicodedata.combining(c), unicodedata.east_asian_width(c), unicodedata.mirrored(c),
            unicodedata.decomposition(c), unicodedata.numeric(c, None), c.upper(), c.lower(),
        )  # fmt: skip


def make(path):
    """Writes the table to a SQLite database at `path`, which appears when it is whole."""
    unfinished = f"{path}.unfinished"
    for old in (unfinished, path):
        if os.path.exists(old):
            os.remove(old)
    database = sqlite3.connect(unfinished)
    with database:
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        database.execute(f"CREATE TABLE {TABLE} ({columns})")
        database.executemany(f"INSERT INTO {TABLE} VALUES ({','.join('?' * len(COLUMNS))})", rows())
    database.close()
    os.replace(unfinished, path)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    make(sys.argv[1])
