"""The types of index columns follow from the bounds of axes, whatever the plan and however a result is read."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from any_sql import run_sql
from pyarrow import parquet

import sparseeinsum as se
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.language.tensors import Axis, Decomposition, Tensor

_TYPES = "SELECT data_type FROM information_schema.columns WHERE table_name = 'stored' AND column_name <> 'val'"
PROGRAMS = {
    "C[i, k] = sum(A[i, j] * B[j, k])": 2,
    "C[i, m] = sum(A[i, j] * H[j, m])": 2,
    "C[i, j] = A[i, j] + B[j, i]": 2,
    "C[i] = max(A[i, j])": 1,
}


@pytest.fixture
def loaded(db: se.Database) -> se.Database:
    rng = np.random.default_rng(0)
    for name in "AB":
        db.tensor(name, sp.csr_array(sp.random_array((300, 300), density=0.05, rng=rng)))
    db.tensor("H", rng.normal(size=(300, 8)))
    return db


@pytest.mark.parametrize("layout", ["entries", "any"])
@pytest.mark.parametrize("optimizer", ["dp", "relational", "dense"])
def test_are_those_of_the_axes(loaded: se.Database, tmp_path: Path, optimizer: str, layout: str) -> None:
    for text, axes in PROGRAMS.items():
        plan = loaded.plan(text, optimizer=optimizer, layout=layout)
        result = loaded.run(plan)["C"]
        with loaded.stream(plan) as stream:
            schemas = {"whole": result.arrow().schema, "streamed": stream["C"].read_all().schema}
        if layout == "entries":
            loaded.run(plan, into={"C": tmp_path / "c.parquet"})
            schemas["file"] = parquet.read_schema(tmp_path / "c.parquet")
            loaded.run(plan, into={"C": "stored"})
            types = [sql_type for (sql_type,) in run_sql(loaded, _TYPES)]
            assert [str(sql_type).lower() for sql_type in types] == ["integer"] * axes
        for schema in schemas.values():
            assert schema.types == [*[pa.int32()] * axes, pa.float64()]
        assert [str(dtype) for dtype in result.df().dtypes] == [*["int32"] * axes, "float64"]


def test_axes_beyond_int32_have_int64() -> None:
    tensor = Tensor("T", (Axis("i", 3), Axis("j", 1 << 40)), "float64")
    keys = {"i": pa.array([1], pa.int64()), "j": pa.array([1 << 35], pa.int64())}
    rows = pa.table({**keys, "val": [2.0]})
    result = se.TensorResult(Schema(tensor, Decomposition((1, 1))), rows)
    assert result.arrow().schema.types == [pa.int32(), pa.int64(), pa.float64()]
    assert result.arrow().column("j").to_pylist() == [1 << 35]
