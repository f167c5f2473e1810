"""Products of three operands that one kernel computes are numpy's, and are chosen where that is cheaper."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from indexing import fuse_wherever_possible, fused_kernels
from numpy.typing import NDArray
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.decompose import decomposed_graph
from sparseeinsum.semantics.dense import evaluate_program

Array = NDArray[Any]
BOUNDS = {"b": 2, "i": 6, "j": 5, "k": 7, "m": 3, "r": 4}
TENSORS = {
    "A": "ij",
    "D": "jk",
    "E": "ijk",
    "F": "ik",
    "G": "bij",
    "H": "bjk",
    "N": "bik",
    "B": "jr",
    "C": "kr",
    "S": "ir",
    "U": "imr",
    "V": "jmr",
    "W": "br",
}
# The two EinSums, the labels that are promoted, and the kernel that computes both. There is none where labels of the
# first EinSum alone are aggregated in the second, which are summed in between, or where absent entries count.
PROGRAMS = {
    "sampled": ("P[i, j, r] = A[i, j] * S[i, r]\nT[i, j] = sum(P[i, j, r] * B[j, r])", "ij", "sampled"),
    "turned": ("P[r, j, i] = S[i, r] * A[i, j]\nT[j, i] = sum(B[j, r] * P[r, j, i])", "ij", "sampled"),
    "written as a sum": ("P[i, j] = sum(S[i, r] * B[j, r])\nT[i, j] = A[i, j] * P[i, j]", "ij", "sampled"),
    "two labels": ("P[i, j, m, r] = A[i, j] * U[i, m, r]\nT[i, j] = sum(P[i, j, m, r] * V[j, m, r])", "ij", "sampled"),
    "one key": ("P[i, j, r] = A[i, j] * S[i, r]\nT[i, j] = sum(P[i, j, r] * S[i, r])", "ij", "sampled"),
    "factors": ("P[i, k, r] = sum(E[i, j, k] * B[j, r])\nT[i, r] = sum(P[i, k, r] * C[k, r])", "ijk", "rows"),
    "factors, one sum": ("P[i, j, k, r] = E[i, j, k] * B[j, r]\nT[i, r] = sum(C[k, r] * P[i, j, k, r])", "ijk", ""),
    "rows of two labels": (
        "P[i, j, k, r] = E[i, j, k] * C[k, r]\nT[j, i, r] = sum(P[i, j, k, r] * S[i, r])",
        "ijk",
        "",
    ),
    "a factor of the result": ("P[i, r] = sum(A[i, j] * B[j, r])\nT[i, r] = P[i, r] * S[i, r]", "ij", "rows"),
    "two factors inside": (
        "P[i, m, r] = sum(A[i, j] * V[j, m, r])\nT[i, m, r] = P[i, m, r] * U[i, m, r]",
        "ij",
        "rows",
    ),
    "triangles": ("P[i, j, k] = A[i, j] * D[j, k]\nT[] = sum(P[i, j, k] * F[i, k])", "ijk", "masked"),
    "masked": ("P[i, k] = sum(A[i, j] * D[j, k])\nT[i, k] = F[i, k] * P[i, k]", "ijk", "masked"),
    "masked columns": ("P[k, i] = sum(A[i, j] * D[j, k])\nT[k, i] = P[k, i] * F[i, k]", "ijk", "masked"),
    "masked sums of rows": ("P[i, k] = sum(A[i, j] * D[j, k])\nT[i] = sum(P[i, k] * F[i, k])", "ijk", "masked"),
    "masked sums of columns": ("P[i, k] = sum(A[i, j] * D[j, k])\nT[k] = sum(P[i, k] * F[i, k])", "ijk", "masked"),
    "masked batches": (
        "P[b, i, k] = sum(G[b, i, j] * H[b, j, k])\nT[b, k, i] = P[b, i, k] * N[b, i, k]",
        "bijk",
        "masked",
    ),
    "masked shortest paths": ("P[i, k] = min(A[i, j] + D[j, k])\nT[i, k] = P[i, k] + F[i, k]", "ijk", "masked"),
    "masked longest paths": ("P[i, k] = max(A[i, j] + D[j, k])\nT[i] = max(P[i, k] + F[i, k])", "ijk", "masked"),
    "masked greatest products": (
        "P[i, j, k] = A[i, j] * D[j, k]\nT[i, k] = max(P[i, j, k] * F[i, k])",
        "ijk",
        "",
    ),
    "masked widest paths": ("P[i, k] = max(min(A[i, j], D[j, k]))\nT[i, k] = min(P[i, k], F[i, k])", "ijk", "masked"),
    "masked reachable": ("P[i, k] = any(A[i, j] and D[j, k])\nT[i, k] = P[i, k] and F[i, k]", "ijk", "masked"),
    "greatest of products": ("P[i, k] = max(A[i, j] * D[j, k])\nT[i, k] = P[i, k] * F[i, k]", "ijk", ""),
    "sums of differences": ("P[i, j, k] = A[i, j] - D[j, k]\nT[i] = sum(P[i, j, k] * F[i, k])", "ijk", ""),
    "the mask lacks a label": ("P[i, j, k] = A[i, j] * D[j, k]\nT[i, k] = sum(P[i, j, k] * A[i, j])", "ijk", ""),
    "read twice": ("P[i, k] = sum(A[i, j] * D[j, k])\nT[i] = sum(P[i, k] * P[i, k])", "ijk", ""),
}

FUNCTIONS = {
    "sampled": "tensor_scaled_dot(",
    "rows": "tensor_gather_product_sum(",
    "masked": "tensor_masked_product_row(",
}
FILLS = {"masked shortest paths": math.inf, "masked longest paths": -math.inf, "masked widest paths": -math.inf}


@pytest.fixture(params=[0.0, math.inf], ids=["shared by threads", "in one thread"])
def everywhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans compute EinSums at once wherever they can."""
    monkeypatch.setattr(decomposed_graph, "_SHARED_SECONDS", request.param)
    fuse_wherever_possible(monkeypatch)


def sparse_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, fill: float, density: float) -> Array:
    """Small numbers, and elsewhere the fill."""
    values = rng.integers(-3, 4, shape).astype(dtype)
    values[rng.random(shape) >= density] = fill
    return values


def pins(program: se.Program, labels: str) -> dict[str, str]:
    """The labels that are promoted in each EinSum."""
    return {
        einsum.output.tensor: "".join(label for label in labels if label in einsum.labels) for einsum in program.einsums
    }


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
@pytest.mark.parametrize("fill", [0, 1, math.inf, -math.inf])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_numpys(shared_db: se.Database, name: str, fill: float, dtype: str, everywhere: None) -> None:
    text, labels, kernel = PROGRAMS[name]
    if (math.isinf(fill) and not dtype.startswith("float")) or (dtype == "bool" and " - " in text):
        pytest.skip("numpy has no such numbers, or no such operation")
    program, rng = se.program(text), np.random.default_rng(7)
    arrays = {}
    for tensor in program.inputs:
        shape = tuple(BOUNDS[label] for label in TENSORS[tensor])
        is_array = "r" in TENSORS[tensor]
        arrays[tensor] = sparse_array(rng, shape, dtype, fill, 1.0 if is_array else 0.5)
        promoted = [f"dim_{axis}" for axis, label in enumerate(TENSORS[tensor]) if label in labels]
        shared_db.tensor(tensor, arrays[tensor], fill=fill, dtype=dtype, promoted=promoted)
    plan = shared_db.plan(program, pin=pins(program, labels), rewrite=False, nonfinite="allow")
    kernels = fused_kernels(plan)
    assert set(kernels) <= {"T"}
    assert kernels.get("T", kernel) == kernel
    if fill == 0 and dtype == "float64" and kernel in ("sampled", "rows"):
        assert kernels == {"T": kernel}
    with np.errstate(invalid="ignore"):
        expected = evaluate_program(program, arrays)["T"]
    result = shared_db.run(plan, progress=False)["T"].to_numpy()
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", [name for name, (_, _, kernel) in PROGRAMS.items() if kernel])
def test_one_kernel_computes_both(db: se.Database, name: str, everywhere: None) -> None:
    text, labels, kernel = PROGRAMS[name]
    program, rng = se.program(text), np.random.default_rng(8)
    fill = FILLS.get(name, 0)
    dtype = "bool" if " and " in text else "float64"
    arrays = {}
    for tensor in program.inputs:
        shape = tuple(BOUNDS[label] for label in TENSORS[tensor])
        arrays[tensor] = sparse_array(rng, shape, dtype, fill, 1.0 if "r" in TENSORS[tensor] else 0.5)
        promoted = [f"dim_{axis}" for axis, label in enumerate(TENSORS[tensor]) if label in labels]
        db.tensor(tensor, arrays[tensor], fill=fill, dtype=dtype, promoted=promoted)
    plan = db.plan(program, pin=pins(program, labels), rewrite=False)
    assert fused_kernels(plan) == {"T": kernel}
    assert FUNCTIONS[kernel] in plan.sql()
    assert "at once with T" in str(plan.explain())
    np.testing.assert_array_equal(db.run(plan)["T"].to_numpy(), evaluate_program(program, arrays)["T"])
    analysed = plan.explain(analyze=True)
    assert "in T" in str(analysed)


@dataclass(frozen=True)
class RandomPair:
    """Two EinSums that may be computed at once, their inputs, and the labels that are promoted."""

    text: str
    arrays: dict[str, Array]
    fill: float
    labels: str
    promoted: dict[str, list[str]]


@st.composite
def random_pairs(draw: st.DrawFn) -> RandomPair:
    """A sparse tensor with two dense factors, or three sparse tensors; the first EinSum may aggregate labels."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    bounds = {label: draw(st.integers(1, 6)) for label in "bijkmr"}
    kind = draw(st.sampled_from(["sampled", "rows", "masked"]))
    aggregate, symbol, fill = "sum", "*", 0.0
    if kind == "masked":
        aggregate, symbol, fill = draw(
            st.sampled_from([("sum", "*", 0.0), ("min", "+", math.inf), ("max", "+", -math.inf)])
        )
        batch = draw(st.sampled_from(["", "b"]))
        operands = {"A": batch + "ij", "B": "jk" + batch, "M": "ik" + batch}
        output = draw(st.sampled_from(["ik" + batch, batch + "ki", "i" + batch, "k", ""]))
        labels = "bijk"
    else:
        inside = draw(st.sampled_from(["r", "mr"]))
        operands = {
            "A": "ijk",
            "B": draw(st.sampled_from(["j", "k", "jk"])) + inside,
            "M": draw(st.sampled_from(["i", "k", "ik"])) + inside,
        }
        output = "ijk" if kind == "sampled" else draw(st.sampled_from(["i", "ji", "kij"])) + inside
        labels = "ijk"
    operands = {name: "".join(draw(st.permutations(list(own)))) for name, own in operands.items()}
    if kind != "masked":  # arrays must have the axes of the result in their order
        operands |= {name: "".join(c for c in operands[name] if c in labels) + inside for name in "BM"}
    first = operands["A"] + operands["B"]
    needed = {*operands["M"], *output}
    kept = [label for label in dict.fromkeys(first) if label in needed or draw(st.booleans())]
    middle = f"{aggregate}(A[{', '.join(operands['A'])}] {symbol} B[{', '.join(operands['B'])}])"
    if set(kept) == set(first):
        middle = middle[len(aggregate) + 1 : -1]
    last = f"P[{', '.join(kept)}] {symbol} M[{', '.join(operands['M'])}]"
    if {*kept, *operands["M"]} != set(output):
        last = f"{aggregate}({last})"
    arrays, promoted = {}, {}
    for name, own in operands.items():
        density = draw(st.sampled_from([0.0, 0.3, 1.0]))
        arrays[name] = sparse_array(rng, tuple(bounds[label] for label in own), "float64", fill, density)
        promoted[name] = [f"dim_{axis}" for axis, label in enumerate(own) if label in labels]
    return RandomPair(
        f"P[{', '.join(kept)}] = {middle}\nT[{', '.join(output)}] = {last}", arrays, fill, labels, promoted
    )


@random_runs(40)
@given(pair=random_pairs())
def test_random_pairs(shared_db: se.Database, pair: RandomPair) -> None:
    program = se.program(pair.text)
    for name, array in pair.arrays.items():
        shared_db.tensor(name, array, fill=pair.fill, promoted=pair.promoted[name])
    with pytest.MonkeyPatch.context() as patch:
        fuse_wherever_possible(patch)
        plan = shared_db.plan(program, pin=pins(program, pair.labels), rewrite=False, nonfinite="allow")
        result = shared_db.run(plan, progress=False)["T"].to_numpy()
    np.testing.assert_array_equal(result, evaluate_program(program, pair.arrays)["T"])


def test_infinite_values_are_computed_one_after_the_other(db: se.Database, everywhere: None) -> None:
    """0.0 * (inf - inf) differs from the sum of products, so that the order counts."""
    text, labels, _ = PROGRAMS["factors"]
    arrays = {
        "E": np.array([[[1.0], [-1.0]]]),
        "B": np.array([[np.inf], [1.0]]),
        "C": np.array([[0.5]]),
    }
    for name, array in arrays.items():
        promoted = [f"dim_{axis}" for axis, label in enumerate(TENSORS[name]) if label in labels]
        db.tensor(name, array, promoted=promoted)
    program = se.program(text)
    plan = db.plan(program, pin=pins(program, labels), rewrite=False, nonfinite="allow")
    assert not fused_kernels(plan)


def test_the_algebra_has_joins_of_two_operands(shared_db: se.Database, everywhere: None) -> None:
    rng = np.random.default_rng(0)
    for name, shape in {"S": (5, 4), "U": (5, 3), "V": (4, 3)}.items():
        shared_db.tensor(
            name, sparse_array(rng, shape, "float64", 0, 0.5), promoted=["dim_0"] + ["dim_1"] * (name == "S")
        )
    text = "C[i, j] = sum(S[i, j] * U[i, r] * V[j, r])"
    plan = shared_db.plan(text)
    assert fused_kernels(plan)
    with pytest.raises(se.AlgebraError, match=r"C: one kernel computes.*optimizer='relational'"):
        plan.algebra()
    assert "join" in str(shared_db.plan(text, optimizer="relational").algebra())


@pytest.mark.engines("duckdb", reason="on PostgreSQL the sum is computed first, by a masked product")
def test_saved_plans_and_little_memory(db: se.Database, tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    entries = np.unique(rng.integers(0, 1_000_000, 20_000))
    coordinates = np.stack([entries // 1000, entries % 1000])
    db.tensor("A", (coordinates, rng.random(len(entries))), shape=(1000, 1000))
    for name in "UV":
        db.tensor(name, rng.random((1000, 16)))
    text = "Y[i, j] = A[i, j] * sum(U[i, k] * V[j, k])"
    plan = db.plan(text)
    assert fused_kernels(plan) == {"Y": "sampled"}
    plan.save(tmp_path / "plan.json")
    loaded = db.load_plan(tmp_path / "plan.json")
    assert fused_kernels(loaded) == {"Y": "sampled"}
    assert not fused_kernels(db.plan(text, indexes=False))
    expected = db.run(plan)["Y"].to_scipy().toarray()
    np.testing.assert_allclose(db.run(loaded)["Y"].to_scipy().toarray(), expected)
    np.testing.assert_allclose(db.run(db.plan(text, indexes=False))["Y"].to_scipy().toarray(), expected)
    np.testing.assert_allclose(db.run(text, memory_limit="100MB")["Y"].to_scipy().toarray(), expected)


class TestChosen:
    """Plans compute at once where that is cheapest, also where other choices of both EinSums are cheaper alone."""

    @pytest.mark.engines("duckdb", "postgresql")
    def test_sampled_where_the_sum_alone_is_cheaper_as_one_array(self, db: se.Database) -> None:
        rng = np.random.default_rng(0)
        entries = sp.random_array((500, 500), density=0.4, rng=rng)
        db.tensor("A", entries, layout="A[I, J]")
        arrays = {name: rng.random((500, 8)) for name in "UV"}
        for name, array in arrays.items():
            db.tensor(name, array)
        plan = db.plan("Y[i, j] = A[i, j] * sum(U[i, k] * V[j, k])")
        assert set(fused_kernels(plan).values()) == {"sampled"}
        expected = entries.toarray() * (arrays["U"] @ arrays["V"].T)
        np.testing.assert_allclose(db.run(plan)["Y"].to_scipy().toarray(), expected)

    @pytest.mark.engines("duckdb", reason="on PostgreSQL one array is cheaper here, even beside the masked product")
    def test_masked_where_products_alone_are_cheaper_as_one_array(self, db: se.Database) -> None:
        adjacency = sp.random_array((1000, 1000), density=0.06, rng=np.random.default_rng(0))
        db.tensor("A", adjacency)
        plan = db.plan("Y[] = sum(A[i, j] * A[j, k] * A[i, k])")
        assert fused_kernels(plan) == {"Y": "masked"}
        dense = adjacency.toarray()
        np.testing.assert_allclose(db.run(plan)["Y"].to_numpy(), ((dense @ dense) * dense).sum())

    @pytest.mark.parametrize("layout", ["T[I, J, K]", "T[I, ~j, ~k]"])
    @pytest.mark.engines("duckdb", "postgresql")
    def test_rows_of_lists(self, db: se.Database, layout: str) -> None:
        rng = np.random.default_rng(0)
        coordinates = np.unravel_index(np.unique(rng.integers(0, 480_000_000, 100_000)), (1000, 800, 600))
        db.tensor("T", (np.stack(coordinates), rng.random(len(coordinates[0]))), shape=(1000, 800, 600), layout=layout)
        db.tensor("B", rng.random((800, 16)))
        db.tensor("C", rng.random((600, 16)))
        text = "Y[i, r] = sum(T[i, j, k] * B[j, r] * C[k, r])"
        plan = db.plan(text, layout="any")
        assert fused_kernels(plan) == {"Y": "rows"}
        np.testing.assert_allclose(db.run(plan)["Y"].to_numpy(), db.run(text, optimizer="relational")["Y"].to_numpy())
