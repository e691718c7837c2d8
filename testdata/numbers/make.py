"""Makes the files beside it with NumPy and pyarrow. Run: python3 -m pip install numpy pyarrow; python3 make.py"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent


def npy(name, array, version=None):
    with open(HERE / f"{name}.npy", "wb") as file:
        np.lib.format.write_array(file, array, version=version, allow_pickle=True)


def limits(dtype):
    """The least, the most and a few between, of a type of integers or floats."""
    info = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else np.finfo(dtype)
    return np.array([info.min, 0, 1, 7, 100, info.max], dtype=dtype)


def parquet(name, table, **options):
    pq.write_table(table, HERE / f"{name}.parquet", **options)


for dtype in ["|i1", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8", "|u1", "<u2", ">u2", "<u4", ">u4", "<f4", ">f4", "<f8", ">f8"]:
    order = {"<": "little", ">": "big", "|": "byte"}[dtype[0]]
    npy(f"{dtype[1:]}_{order}", limits(dtype).reshape(2, 3))
for dtype in ["<u8", ">u8"]:
    order = {"<": "little", ">": "big"}[dtype[0]]
    npy(f"u8_{order}", np.array([0, 1, 2**63 - 1], dtype=dtype))
npy("u8_over", np.array([[1, 2], [3, 2**63]], dtype="<u8"))

count = np.arange(24, dtype="<i4")
npy("fortran", np.asfortranarray(count.reshape(2, 3, 4)))
npy("axes_8", count.reshape(1, 2, 1, 3, 1, 2, 2, 1))
npy("axes_9", count.reshape(1, 2, 1, 3, 1, 2, 2, 1, 1))
npy("axes_0", np.array(-7, dtype="<i8"))
npy("empty", np.zeros((0, 3), dtype="<f8"))
npy("version_2", count, (2, 0))
npy("version_3", count, (3, 0))

npy("objects", np.array([1, None], dtype=object))
npy("complex", np.array([1 + 2j]))
npy("strings", np.array(["one", "two"]))
npy("bytes", np.array([b"one", b"two"]))
npy("booleans", np.array([True, False]))
npy("times", np.array(["2026-11-21"], dtype="datetime64[D]"))
npy("halves", np.array([1.5], dtype="<f2"))
npy("structures", np.array([(1, 2.0)], dtype=[("a", "<i4"), ("b", "<f8")]))
npy("not_finite", np.array([[1.0, 2.0], [np.inf, 4.0]]))
npy("not_finite_fortran", np.asfortranarray(np.array([[1.0, 2.0], [np.nan, 4.0]])))

columns = {
    f"{kind}{bits}": pa.array([int(v) for v in limits(f"{kind[0]}{bits // 8}")], type=f"{kind}{bits}")
    for kind in ["int", "uint"]
    for bits in [8, 16, 32, 64]
    if (kind, bits) != ("uint", 64)
}
columns["uint64"] = pa.array([0, 1, 2, 3, 4, 2**63 - 1], type=pa.uint64())
columns["float"] = pa.array(limits("<f4"), type=pa.float32())
columns["double"] = pa.array(limits("<f8"), type=pa.float64())
table = pa.table(columns)
for compression in ["none", "snappy", "lz4", "zstd"]:
    parquet(f"kinds_{compression}", table, compression=compression)
parquet("kinds_page_2", table, data_page_version="2.0")
parquet("kinds_version_1", table.drop_columns(["uint32"]), version="1.0")
parquet("kinds_plain", table, use_dictionary=False)
ints = ["int32", "int64", "uint64"]
parquet("kinds_delta", table.select(ints), use_dictionary=False, column_encoding={c: "DELTA_BINARY_PACKED" for c in ints})
split = ["int32", "int64", "float", "double"]
parquet("kinds_split", table.select(split), use_dictionary=False, column_encoding={c: "BYTE_STREAM_SPLIT" for c in split})
required = pa.schema([pa.field(n, t.type, nullable=False) for n, t in zip(table.column_names, table.columns)])
parquet("kinds_required", table.cast(required))

many = pa.table({"n": pa.array(range(1000), type=pa.int64()), "square": pa.array([float(i * i) for i in range(1000)])})
parquet("groups", many, row_group_size=300, data_page_size=512)
parquet("no_rows", many.slice(0, 0))

parquet("gzip", many.slice(0, 10), compression="gzip")
parquet(
    "refused",
    pa.table(
        {
            "n": [1, 2, 3],
            "null": [1, None, 3],
            "over": pa.array([1, 2, 2**63], type=pa.uint64()),
            "nan": [1.0, 2.0, float("nan")],
            "large": [2**53 + 1, 2, 3],
            "half": [0.5, 1.5, 2.5],
            "text": ["a", "b", "c"],
            "flag": [True, False, True],
            "day": pa.array([1, 2, 3], type=pa.date32()),
            "time": pa.array([1, 2, 3], type=pa.timestamp("us")),
            "decimal": pa.array([1, 2, 3], type=pa.decimal128(5, 2)),
            "small": pa.array([1, 2, 3], type=pa.float16()),
            "list": [[1], [2], [3]],
            "nested": [{"a": 1}, {"a": 2}, {"a": 3}],
        }
    ),
)

(HERE / "named.csv").write_text("name,height,\"width, m\"\n1,1.5,3\n2,-0.25,4\n-3,1e-9,5\n")
(HERE / "plain.csv").write_text("1,2,3\n-4,5,9223372036854775807\n")
(HERE / "tabs.tsv").write_text("a\tb\r\n1\t2\r\n3\t4\r\n")
