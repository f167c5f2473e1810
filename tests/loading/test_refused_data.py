"""Invalid data are refused by name, and the database stays as it was."""

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from reading import contents, read_back

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", "postgresql")

MATRIX = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, -3.0]])
ROWS = {"src": [0, 1, 1], "dst": [1, 0, 2], "weight": [1.5, 2.0, -3.0]}  # MATRIX as a frame


@dataclass(frozen=True)
class Refused:
    """Data that are no tensor, the type of the error, and its message."""

    data: object
    error: type[se.SparseEinsumError]
    message: str
    options: dict[str, Any] = field(default_factory=dict)


def entries(*rows: tuple[Any, ...], types: tuple[pa.DataType, ...] = ()) -> pa.Table:
    """A table of rows (i, j, value)."""
    kinds = types or (pa.int64(), pa.int64(), pa.float64())
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    return pa.table(columns, names=["i", "j", "v"])


REFUSED = {
    "NULL index": Refused(
        entries((0, 0, 1.0), (1, None, 1.0), (None, 2, 1.0)), se.DataError, r"row 1 \(counted.*column j is NULL; leave"
    ),
    "NULL value": Refused(
        entries((0, 0, 1.0), (1, 1, 1.0), (1, 2, None)), se.DataError, r"row 2 \(counted.*column v is NULL; leave"
    ),
    "mixed list": Refused(
        [entries((0, 0, 1.0)), 2.0],
        se.DataError,
        r"a list whose item 1 .*is of type float; items must",
    ),
    "iterator of numbers": Refused(
        map(float, count()), se.DataError, r"a map whose item 0 .*of type float; .*numbers must be in a list"
    ),
    "iterator of nothing": Refused(iter([]), se.DataError, r"list_iterator without items"),
    "batches of other columns": Refused(
        [entries((0, 0, 1.0)), pa.table({"i": [0], "v": [1.0]})],
        se.DataError,
        r"item 1 .*has the columns i, v, and item 0 has i, j, v",
    ),
    "batches of other types": Refused(
        [pa.table({"i": [0], "v": [1]}), pa.table({"i": [1], "v": [1.5]})],
        se.DataError,
        r"column v of item 1 .*holds double, and that of item 0 int64",
    ),
    "index beyond the type of the first batch": Refused(
        [pa.table({"i": pa.array([0], pa.int8()), "v": [1.0]}), pa.table({"i": [500], "v": [1.5]})],
        se.DataError,
        r"500 not in range",
    ),
    "list of dicts": Refused([{"i": 0, "v": 1.0}], se.DataError, r"list of dict; .*as in pyarrow.Table.from_pylist"),
    "array with fields": Refused(
        np.array([(0, 1.0)], [("i", int), ("v", float)]), se.DataError, r"with the fields i, v; make a table of it"
    ),
    "text as the value": Refused(
        pd.DataFrame({"i": [0], "name": ["x"], "w": [1.0]}),
        se.DataError,
        r"value column name holds .*string, which is no number; choose the value, as in value='w'",
        {"index": ["i"], "value": "name"},
    ),
    "NULL in polars": Refused(
        pl.DataFrame({"i": [0, None], "v": [1.0, 2.0]}), se.DataError, r"row 1 \(counted.*column i is NULL; leave"
    ),
    "NULL before summing": Refused(
        entries((0, 0, 1.0), (0, 0, None)), se.DataError, r"row 1 .*column v is NULL", {"duplicates": "sum"}
    ),
    "masked array": Refused(
        np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], [[False, False], [True, False]]),
        se.DataError,
        r"element \(1, 0\): the value is masked; fill",
    ),
    "negative index": Refused(
        ([[0, 1, -2, -1]], [1.0, 2.0, 3.0, 4.0]), se.DataError, r"row 2 \(counted.*index dim_0 is -2.*count from 0"
    ),
    "only negative indices": Refused(([[-3]], [1.0]), se.DataError, r"row 0 .*index dim_0 is -3"),
    "negative index before summing": Refused(
        ([[5, 5, 5, -1]], [1.0] * 4), se.DataError, r"row 3 .*index dim_0 is -1", {"duplicates": "sum"}
    ),
    "index beyond the bound": Refused(
        ([[0, 1, 2], [0, 3, 4]], [1.0, 2.0, 3.0]),
        se.DataError,
        r"row 1 \(counted.*index dim_1 is 3.*axis dim_1 has the bound 3.*larger shape",
        {"shape": (3, 3)},
    ),
    "index beyond 32 bits": Refused(
        ([[0, 1 << 40]], [1.0, 2.0]), se.DataError, rf"row 1 .*index dim_0 is {1 << 40}", {"shape": (3,)}
    ),
    "index beyond 63 bits": Refused(
        (np.array([[2**64 - 1]], np.uint64), [1.0]),
        se.DataError,
        rf"row 0 .*index dim_0 is {2**64 - 1}",
        {"shape": (3,)},
    ),
    "shape smaller than a frame": Refused(
        pd.DataFrame(ROWS),
        se.DataError,
        r"row 2 \(counted.*index dst is 2.*axis dst has the bound 2",
        {"shape": (2, 2)},
    ),
    "duplicate coordinate": Refused(
        entries((0, 1, 1.0), (1, 1, 1.0), (0, 1, 3.0)), se.DataError, r"row 2 .*\(0, 1\).*earlier row.*duplicates='sum'"
    ),
    "duplicate number": Refused(pd.DataFrame({"v": [1.0, 2.0]}), se.DataError, r"row 1 .*earlier row"),
    "bytes as index": Refused(
        pd.DataFrame({"i": [b"a", b"b"], "v": [1.0, 2.0]}), se.DataError, r"index column i holds binary; indices must"
    ),
    "float index": Refused(
        pd.DataFrame({"i": [0.0, 1.0], "v": [1.0, 2.0]}), se.DataError, r"index column i holds double; indices must"
    ),
    "bool index": Refused(
        entries((True, 0, 1.0), types=(pa.bool_(), pa.int64(), pa.float64())), se.DataError, "i holds"
    ),
    "value first": Refused(
        pd.DataFrame({"v": [1.0], "i": [0]}),
        se.DataError,
        r"index column v holds double.*value must be the last column",
    ),
    "float coordinates": Refused(
        (np.zeros((1, 2)), [1.0, 2.0]), se.DataError, r"coordinates of dtype float64; they must be whole numbers"
    ),
    "bound beyond 63 bits": Refused(
        pd.DataFrame(ROWS), se.ShapeError, rf"axis src of tensor A has the bound {2**70}", {"shape": (2**70, 3)}
    ),
    "no numbers": Refused(np.array(["a", "b"]), se.DataError, r"tensor A holds str.*no number"),
    "objects": Refused(np.array([1.0, None]), se.DataError, r"tensor A holds object.*no number"),
    "unsigned number that float64 lacks": Refused(
        np.array([2**64 - 1], np.uint64),
        se.DataError,
        rf"row 0 .*{2**64 - 1} is no float64; round it first, as in values.astype\('float64'\)",
        {"dtype": "float64"},
    ),
    "texts": Refused(["a", "b"], se.DataError, r"holds str32, which is no number"),
    "intervals": Refused(np.array([1], "timedelta64[s]"), se.DataError, r"holds timedelta64"),
    "longer floats": Refused(MATRIX.astype(np.longdouble), se.DataError, r"float128.*pass dtype='float64' to round"),
    "longer complex numbers": Refused(
        MATRIX.astype(np.clongdouble), se.DataError, r"complex256.*pass dtype='complex128' to round"
    ),
    "complex numbers in pandas": Refused(
        pd.DataFrame({"i": [0], "v": [1j]}), se.DataError, r"cannot be read.*complex128.*as \(coordinates, values\)"
    ),
    "dates": Refused(np.array(["2020-01-01"], "datetime64[D]"), se.DataError, r"tensor A holds datetime64"),
    "strings in a frame": Refused(
        pd.DataFrame({"i": [0], "v": ["x"]}), se.DataError, r"value column v holds .*string.*no number"
    ),
    "arrays in a frame": Refused(pa.table({"i": [0], "v": [[1.0]]}), se.DataError, r"value column v holds list"),
    "mixed column": Refused(pd.DataFrame({"i": [0, "a"], "v": [1.0, 2.0]}), se.DataError, r"tensor A cannot be read"),
    "unknown dtype": Refused(
        MATRIX, se.DataError, r"dtype flaot64.*choose float64, float32, int64", {"dtype": "flaot64"}
    ),
    "dtype that no tensor has": Refused(MATRIX, se.DataError, r"dtype int16.*choose float64", {"dtype": "int16"}),
    "rows of several lengths": Refused([[1.0, 2.0], [3.0]], se.DataError, r"tensor A is no array"),
    "dictionary": Refused({"a": 1}, se.DataError, r"cannot be made from dict; give an array of numpy.*scipy.sparse"),
    "nothing": Refused(None, se.DataError, r"cannot be made from NoneType"),
    "frame without columns": Refused(pd.DataFrame(), se.DataError, r"table without columns; it needs index columns"),
    "two columns of a name": Refused(
        pa.table([[0], [1], [2.0]], names=["i", "i", "v"]), se.DataError, r"two columns named i; rename one"
    ),
    "shape of another rank": Refused(pd.DataFrame(ROWS), se.ShapeError, r"shape \(3,\).*2 axes", {"shape": (3,)}),
    "shape of another array": Refused(
        MATRIX, se.ShapeError, r"given shape \(3, 3\).*data have shape \(2, 3\)", {"shape": (3, 3)}
    ),
    "shape of another sparse matrix": Refused(
        sp.csr_array(MATRIX), se.ShapeError, r"given shape \(2, 4\).*data have shape \(2, 3\)", {"shape": (2, 4)}
    ),
    "negative bound": Refused(
        pd.DataFrame(ROWS), se.ShapeError, r"axis src .*bound -1; it must be", {"shape": (-1, 3)}
    ),
    "bound that is no whole number": Refused(
        pd.DataFrame(ROWS), se.ShapeError, r"shape \(2\.5, 3\); give a whole number", {"shape": (2.5, 3)}
    ),
    "shape that is a number": Refused(pd.DataFrame(ROWS), se.ShapeError, r"shape 3; give a whole number", {"shape": 3}),
    "too few coordinates": Refused(
        (np.zeros((2, 3), int), [1.0]), se.ShapeError, r"shape \(rank, n\) and n values; got \(2, 3\) and \(1,\)"
    ),
    "too few axis names": Refused(MATRIX, se.ShapeError, r"2 axes, but 1 names are given: i", {"axes": ["i"]}),
    "axis name twice": Refused(MATRIX, se.ShapeError, r"axis name twice: i, i", {"axes": ["i", "I"]}),
    "axis without a name": Refused(MATRIX, se.ShapeError, r"axis without a name; name it in axes", {"axes": ["i", ""]}),
    "axis named as the values": Refused(
        MATRIX, se.ShapeError, r"named 'val', which is the column", {"axes": ["Val", "j"]}
    ),
    "index column named as the values": Refused(
        pd.DataFrame({"val": [0], "v": [1.0]}), se.ShapeError, r"named 'val', which is the column"
    ),
    "unknown axis to promote": Refused(
        MATRIX, se.ShapeError, r"no axis x to promote; it has dim_0, dim_1", {"promoted": ["x"]}
    ),
    "unknown axis to promote, by its number": Refused(
        MATRIX, se.ShapeError, r"no axis 0 to promote; it has dim_0, dim_1", {"promoted": [0]}
    ),
    "fill that the dtype of the data lacks": Refused(
        np.arange(3), se.DataError, r"dtype int64, which does not hold the fill inf; choose.*dtype", {"fill": np.inf}
    ),
    "fill that the dtype given lacks": Refused(
        MATRIX, se.DataError, r"dtype float64, which does not hold the fill 1j", {"fill": 1j}
    ),
    "fill beyond the dtype": Refused(
        MATRIX.astype("float32"), se.DataError, r"float32, which does not hold the fill 1e\+300", {"fill": 1e300}
    ),
    "whole fill that the dtype lacks": Refused(
        MATRIX, se.DataError, rf"float64, which does not hold the fill {2**53 + 1}", {"fill": 2**53 + 1}
    ),
    "whole fill beyond 63 bits": Refused(
        np.arange(3), se.DataError, rf"int64, which does not hold the fill {2**63}", {"fill": 2**63}
    ),
    "fill that is no truth value": Refused(
        np.array([True]), se.DataError, "bool, which does not hold the fill 2", {"fill": 2}
    ),
    "fill that is a text": Refused(MATRIX, se.DataError, "the fill '1', which is no number", {"fill": "1"}),
    "fill that is not a number": Refused(
        MATRIX, se.ShapeError, "the fill NaN, which equals nothing; choose", {"fill": np.nan}
    ),
    "sum beyond int64": Refused(
        ([[1, 0, 1]], [2**62, 5, 2**62]),
        se.DataError,
        rf"coordinate \(1\) add up to {2**63}, which is no int64; pass dtype='float64'",
        {"duplicates": "sum"},
    ),
    "sum beyond int64 of numbers without an index": Refused(
        pd.DataFrame({"v": [2**62, 2**62]}), se.DataError, rf"add up to {2**63}", {"duplicates": "sum"}
    ),
    "sum beyond float32": Refused(
        ([[1, 0, 1]], np.array([3e38, 5, 3e38], np.float32)),
        se.DataError,
        r"coordinate \(1\) add up to 6.*e\+38, which is no float32; pass dtype='float64'",
        {"duplicates": "sum"},
    ),
    "NULL in a complex number": Refused(
        pa.table({"i": [0, 1], "v": [{"re": 1.0, "im": 2.0}, {"re": 1.0, "im": None}]}),
        se.DataError,
        r"row 1 \(counted.*column v is NULL",
    ),
    "structs of other fields": Refused(
        pa.table({"i": [0], "v": [{"x": 1.0, "y": 2.0}]}), se.DataError, r"v holds struct.*no number"
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_bad_data_are_refused_without_a_change(shared_db: se.Database, case: Refused) -> None:
    shared_db.tensor("A", MATRIX)
    before = contents(shared_db)
    with pytest.raises(case.error, match=case.message) as caught:
        shared_db.tensor("A", case.data, **case.options)
    assert "tensor A" in str(caught.value)
    assert contents(shared_db) == before
    np.testing.assert_array_equal(read_back(shared_db, "A"), MATRIX)
