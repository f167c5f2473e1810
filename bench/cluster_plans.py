"""The TRA paper's computations on a cluster: distributions of tensors, plans by hand and by search, and their results.

The plans are those of `bench.relational_plans`, on matrices that are scaled down and cut into blocks. Each comes with
a program that computes the same, to show the plan that `db.plan` makes of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.relational_plans import (
    SUM,
    data_parallel,
    data_parallel_parts,
    horizontal,
    model_parallel,
    model_parallel_parts,
    nearest_neighbour,
    product,
    sum_of,
    training_step,
    vertical,
)
from sparseeinsum.algebra.implementation.plan_search import best_plans
from sparseeinsum.algebra.implementation.site_operators import (
    Broadcast,
    LocalAggregation,
    LocalJoin,
    PlacedInput,
    Shuffle,
    SitePlan,
)
from sparseeinsum.algebra.relational.kernels import MATRIX_PRODUCT
from sparseeinsum.algebra.relational.relational_expressions import Expression, Input, Join
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.api.relational_queries import SQL_RULES, sites_of
from sparseeinsum.decompose.clusters.transfers import Cluster
from sparseeinsum.decompose.places.distribution import Distribution, Hashed

_BLOCKS = 8  # more than there are machines, so that each gets some

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Laid:
    """A tensor in blocks, and the axis whose blocks say where they are."""

    array: Array
    parts: tuple[int, ...]
    by: int

    @property
    def tiles(self) -> dict[str, int]:
        """Of every axis."""
        sizes = (size // count for size, count in zip(self.array.shape, self.parts, strict=True))
        return {f"dim_{axis}": size for axis, size in enumerate(sizes)}

    @property
    def distribute(self) -> str:
        """As `Database.tensor` takes it."""
        return f"dim_{self.by}"

    @property
    def distribution(self) -> Distribution:
        """As plans have it."""
        return Hashed(self.by)

    def input(self, name: str) -> Input:
        """As a relation."""
        return Input(name, RelationType(self.parts, tuple(self.tiles.values())))


Layout = Mapping[str, Laid]


@dataclass(frozen=True)
class Way:
    """One way to compute something.

    Attributes:
        name: Of the plan.
        layout: How tensors lie.
        plans: Of the implementation algebra; none where the program is planned.
    """

    name: str
    layout: Layout
    plans: tuple[SitePlan, ...] = ()


@dataclass(frozen=True)
class Case:
    """Something to compute, in several ways.

    Attributes:
        name: What is computed.
        ways: To compute it.
        program: That computes it, too.
        expected: Its results, by name, in the order in which plans have them.
    """

    name: str
    ways: tuple[Way, ...]
    program: str
    expected: Mapping[str, Array]


def _chosen(layout: Layout, expressions: Sequence[Expression], sites: int) -> tuple[Way, Way]:
    """What the search over the rules of the implementation algebra finds, and what is left to the planner."""
    distributions = {name: laid.distribution for name, laid in layout.items()}
    plans = best_plans(expressions, distributions, sites_of(Cluster(sites, sites)), SQL_RULES)
    return Way("search", layout, plans), Way("db.plan", layout)


def product_case(name: str, rows: int, inner: int, columns: int, sites: int) -> Case:
    """Table 4: X lies by rows, and Y by columns."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(rows, inner)), rng.normal(size=(inner, columns))
    layout = {"X": Laid(x, (4, _BLOCKS), 0), "Y": Laid(y, (_BLOCKS, 4), 1)}
    left, right = (PlacedInput(laid.input(name), laid.distribution) for name, laid in layout.items())
    ways = product(left, right)
    by_inner = LocalJoin(Shuffle(left, (1,)), Shuffle(right, (0,)), (1,), (0,), MATRIX_PRODUCT)
    parts = LocalAggregation(by_inner, (0, 2), SUM)
    plans = {
        "BMM, X everywhere": _added_up(LocalJoin(Broadcast(left), right, (1,), (0,), MATRIX_PRODUCT)),
        "BMM, Y everywhere": _added_up(LocalJoin(left, Broadcast(right), (1,), (0,), MATRIX_PRODUCT)),
        "CMM": LocalAggregation(Shuffle(parts, (0,)), (0, 1), SUM),
        "RMM": ways.replicated(),
    }
    expression = sum_of(Join(left.input, right.input, (1,), (0,), MATRIX_PRODUCT), [0, 2])
    made = [Way(way, layout, (plan,)) for way, plan in plans.items()]
    program = "C[i, k] = sum(X[i, j] * Y[j, k])"
    return Case(name, (*made, *_chosen(layout, [expression], sites)), program, {"C": x @ y})


def _added_up(pairs: LocalJoin) -> SitePlan:
    """Products of blocks, added up where they are."""
    return LocalAggregation(pairs, (0, 2), SUM)


def neighbour_case(name: str, points: int, features: int, sites: int) -> Case:
    """Table 6, up to distances: points lie by rows, or points and metric by features."""
    rng = np.random.default_rng(0)
    x, q, metric = (rng.normal(size=size) for size in ((points, features), (features,), (features, features)))
    cut = _BLOCKS
    by_rows = {"q": Laid(q, (1,), 0), "X": Laid(x, (cut, 1), 0), "A": Laid(metric, (1, 1), 0)}
    by_features = {"q": Laid(q, (cut,), 0), "X": Laid(x, (1, cut), 1), "A": Laid(metric, (cut, cut), 0)}
    ways = (
        Way("Opt4Horizontal", by_rows, (horizontal(points, features, cut),)),
        Way("Opt4Vertical", by_features, (vertical(points, features, cut),)),
    )
    best, parts = (by_rows, (cut, 1)) if points > features else (by_features, (1, cut))
    expression, _ = nearest_neighbour(points, features, parts)
    program = "P[n, k] = sum((X[n, j] - q[j]) * A[j, k])\nD[n] = sum(P[n, k] * (X[n, k] - q[k]))"
    distances = np.einsum("nj,jk,nk->n", x - q, metric, x - q, optimize=True)
    return Case(name, (*ways, *_chosen(best, [expression], sites)), program, {"D": distances})


_STEP = """
H[b, h]  = relu(sum(X[b, m] * W1[m, h]))
Y[b, o]  = sigmoid(sum(H[b, h] * W2[h, o]))
E[b, o]  = Y[b, o] - T[b, o]
G2[h, o] = sum(H[b, h] * E[b, o])
F[b, h]  = sum(E[b, o] * W2[h, o]) * sign(H[b, h])
G1[m, h] = sum(X[b, m] * F[b, h])
V1[m, h] = W1[m, h] - G1[m, h]
V2[h, o] = W2[h, o] - G2[h, o]
"""


def training_case(name: str, shape: tuple[int, int, int, int], sites: int) -> Case:
    """Table 9: a step of training; batch, features, hidden neurons and labels are cut as the plan wants them."""
    batch, features, hidden, labels = shape
    rng = np.random.default_rng(0)
    inputs = {
        "X": rng.normal(size=(batch, features)),
        "W1": rng.normal(size=(features, hidden)) / np.sqrt(features),
        "W2": rng.normal(size=(hidden, labels)) / np.sqrt(hidden),
        "T": rng.random((batch, labels)),
    }
    by_batch = _laid(inputs, data_parallel_parts(_BLOCKS), {"X": 0, "W1": 1, "W2": 0, "T": 0})
    by_model = _laid(inputs, model_parallel_parts(_BLOCKS), {"X": 1, "W1": 0, "W2": 1, "T": 1})
    ways = (
        Way("TRA-DP", by_batch, data_parallel(shape, _BLOCKS, {name: by_batch[name].distribution for name in inputs})),
        Way("TRA-MP", by_model, model_parallel(shape, _BLOCKS, {name: by_model[name].distribution for name in inputs})),
    )
    is_wide = features > hidden
    best = by_model if is_wide else by_batch
    parts = model_parallel_parts(_BLOCKS) if is_wide else data_parallel_parts(_BLOCKS)
    found = (*ways, *_chosen(best, training_step(shape, parts), sites))
    return Case(name, found, _STEP, _trained(inputs))


def _laid(inputs: Mapping[str, Array], parts: tuple[int, int, int, int], by: Mapping[str, int]) -> dict[str, Laid]:
    batch, features, hidden, labels = parts
    cut = {"X": (batch, features), "W1": (features, hidden), "W2": (hidden, labels), "T": (batch, labels)}
    return {name: Laid(array, cut[name], by[name]) for name, array in inputs.items()}


def _trained(inputs: Mapping[str, Array]) -> dict[str, Array]:
    """New weights, by numpy."""
    hidden = np.maximum(inputs["X"] @ inputs["W1"], 0)
    error = 1 / (1 + np.exp(-hidden @ inputs["W2"])) - inputs["T"]
    hidden_error = (error @ inputs["W2"].T) * np.sign(hidden)
    return {"V1": inputs["W1"] - inputs["X"].T @ hidden_error, "V2": inputs["W2"] - hidden.T @ error}
