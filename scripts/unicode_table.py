"""Makes the table of the demo and of the test of ten thousand lookups: Unicode's named characters, as Python's
`unicodedata` has them. Usage: unicode_table.py OUT.sqlite"""

import sqlite3
import sys
import unicodedata

COLUMNS = """code TEXT PRIMARY KEY, char TEXT, name TEXT, category TEXT, bidirectional TEXT, combining INTEGER,
east_asian_width TEXT, mirrored INTEGER, decimal INTEGER, numeric REAL, decomposition TEXT, utf8 BLOB"""


def rows():
    for point in range(sys.maxunicode + 1):
        char = chr(point)
        name = unicodedata.name(char, None)
        if name is None:
            continue
        yield (
            f"U+{point:04X}",
            char,
            name,
            unicodedata.category(char),
            unicodedata.bidirectional(char),
            unicodedata.combining(char),
            unicodedata.east_asian_width(char),
            unicodedata.mirrored(char),
            unicodedata.decimal(char, None),
            unicodedata.numeric(char, None),
            unicodedata.decomposition(char),
            char.encode(),
        )


def make(path):
    """Writes the table `unicode` to a new SQLite database and returns how many rows it has."""
    with sqlite3.connect(path) as db:
        db.execute(f"CREATE TABLE unicode ({COLUMNS})")
        db.executemany("INSERT INTO unicode VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", rows())
        (count,) = db.execute("SELECT count(*) FROM unicode").fetchone()
    db.close()
    return count


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(make(sys.argv[1]))
