"""Plans of the tensor relational algebra paper, by hand: matrix products, nearest neighbours, a training step.

The numbers that the paper prints for them (tables 4, 6 and 9) are beside the plans.
"""

from collections.abc import Callable, Mapping

from sparseeinsum.algebra.implementation.compile import local_operator
from sparseeinsum.algebra.implementation.movement_rules import skip_shuffle_before_aggregation
from sparseeinsum.algebra.implementation.product_rules import AggregatedJoin
from sparseeinsum.algebra.implementation.site_operators import (
    Broadcast,
    LocalAggregation,
    LocalJoin,
    PlacedInput,
    Shuffle,
    SitePlan,
    transformed,
)
from sparseeinsum.algebra.relational.folds import AggregateFold
from sparseeinsum.algebra.relational.kernels import MATRIX_PRODUCT, MULTIPLY, SUBTRACT, einsum_kernel, elementwise
from sparseeinsum.algebra.relational.relational_expressions import Aggregation, Expression, Input, Join, Transform
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.decompose.places.distribution import Distribution, Hashed, Scattered

_SCATTERED = Scattered()

SUM = AggregateFold("sum")


def sum_of(given: Expression, group_by: list[int]) -> Aggregation:
    """The aggregation that adds up."""
    return Aggregation(given, tuple(group_by), SUM)


def matrix(
    name: str, shape: tuple[int, int], parts: tuple[int, int], distribution: Distribution = _SCATTERED
) -> PlacedInput:
    """A matrix in so many blocks."""
    assert all(size % count == 0 for size, count in zip(shape, parts, strict=True))
    bound = tuple(size // count for size, count in zip(shape, parts, strict=True))
    return PlacedInput(Input(name, RelationType(parts, bound)), distribution)


def product(left: PlacedInput, right: PlacedInput) -> AggregatedJoin:
    """The product of two matrices, in whichever way."""
    pairs = LocalJoin(Broadcast(left), right, (1,), (0,), MATRIX_PRODUCT)
    return AggregatedJoin(pairs, left, right, (0, 2), SUM)


SHAPES = {
    "two general": (40_000, 40_000, 40_000),
    "a common large dim": (10_000, 640_000, 10_000),
    "two large dims": (80_000, 10_000, 80_000),
}
# Table 4, as printed.
PRINTED = {
    "two general": (1.6e10, 1.6e10, 1.6e10),
    "a common large dim": (6.4e10, 1.0e9, 6.4e10),
    "two large dims": (8.0e9, 6.4e10, 8.0e9),
}


def three_ways(shape: tuple[int, int, int], sites: int) -> tuple[SitePlan, SitePlan, SitePlan]:
    """BMM, CMM and RMM, of matrices that lie as each of them wants."""
    rows, inner, columns = shape
    by_rows = (matrix("X", (rows, inner), (1, 1)), matrix("Y", (inner, columns), (1, sites), Hashed(1)))
    by_inner = (
        matrix("X", (rows, inner), (1, sites), Hashed(1)),
        matrix("Y", (inner, columns), (sites, 1), Hashed(0)),
    )
    half = sites // 2
    in_both = (matrix("X", (rows, inner), (half, 1)), matrix("Y", (inner, columns), (1, half)))
    broadcast = product(*by_rows).broadcast()
    (without_shuffle,) = skip_shuffle_before_aggregation(broadcast)
    return without_shuffle, product(*by_inner).cross(), product(*in_both).replicated()


def nearest_neighbour(points: int, features: int, parts: tuple[int, int]) -> tuple[Expression, dict[str, Input]]:
    """Section 6.2, up to distances; points are cut into so many parts by rows, and by features."""
    by_rows, by_features = parts
    sizes = (points // by_rows, features // by_features)
    inputs = {
        "q": Input("q", RelationType((by_features,), (sizes[1],))),
        "X": Input("X", RelationType(parts, sizes)),
        "A": Input("A", RelationType((by_features, by_features), (sizes[1], sizes[1]))),
    }
    difference = Join(inputs["X"], inputs["q"], (1,), (0,), einsum_kernel("nj,j->nj", join=SUBTRACT.expression))
    projected = sum_of(Join(difference, inputs["A"], (1,), (0,), MATRIX_PRODUCT), [0, 2])
    products = Join(projected, difference, (0, 1), (0, 1), MULTIPLY)
    return Transform(sum_of(products, [0]), einsum_kernel("nj->n")), inputs


def horizontal(points: int, features: int, sites: int) -> SitePlan:
    """Opt4Horizontal: query and metric go everywhere, points stay where they are, by rows."""
    expression, _ = nearest_neighbour(points, features, (sites, 1))
    plans: dict[int, SitePlan] = {}
    for node in topological_order(expression):
        inputs = tuple(plans[id(operand)] for operand in node.inputs)
        if isinstance(node, Input):
            placed = PlacedInput(node, Hashed(0))
            plans[id(node)] = placed if node.name == "X" else Broadcast(placed)
        else:
            plans[id(node)] = local_operator(node, inputs)
    return plans[id(expression)]


def vertical(points: int, features: int, sites: int) -> SitePlan:
    """Opt4Vertical: the query goes everywhere, points and metric meet by features (CMM)."""
    _, inputs = nearest_neighbour(points, features, (1, sites))
    x, q = PlacedInput(inputs["X"], Hashed(1)), PlacedInput(inputs["q"], Hashed(0))
    difference = LocalJoin(x, Broadcast(q), (1,), (0,), einsum_kernel("nj,j->nj", join=SUBTRACT.expression))
    pairs = LocalJoin(difference, PlacedInput(inputs["A"], Hashed(0)), (1,), (0,), MATRIX_PRODUCT)
    projected = LocalAggregation(Shuffle(pairs, (2,)), (0, 2), SUM)
    products = LocalJoin(projected, difference, (0, 1), (0, 1), MULTIPLY)
    distances = transformed(products, einsum_kernel("nj->n"))
    return LocalAggregation(Shuffle(LocalAggregation(distances, (0,), SUM), (0,)), (0,), SUM)


# Table 6 prints the two losers the wrong way round: 8 sites times 1.5e6 points of 6e3 features are 7.2e10 floats, and
# 8 times 1e5 features squared 8.0e10.
NEIGHBOURS = {  # points, features: floats of Opt4Horizontal and of Opt4Vertical, on 8 sites
    (1_500_000, 6_000): (2.9e8, 7.2e10),
    (6_000, 100_000): (8.0e10, 4.8e9),
}


FFNN_SHAPES = {  # batch, features, hidden neurons, labels
    "Google 100k": (10_000, 1_600, 100_000, 10),
    "Google 150k": (10_000, 1_600, 150_000, 10),
    "Google 200k": (10_000, 1_600, 200_000, 10),
    "Amazon 1k": (1_000, 597_540, 1_000, 14_588),
    "Amazon 3k": (1_000, 597_540, 3_000, 14_588),
    "Amazon 5k": (1_000, 597_540, 5_000, 14_588),
    "Amazon 7k": (1_000, 597_540, 7_000, 14_588),
}
PRINTED_DATA_PARALLEL = {
    "Google 100k": 9.7e8,
    "Google 150k": 1.5e9,
    "Google 200k": 1.9e9,
    "Amazon 1k": 3.7e9,
    "Amazon 3k": 1.1e10,
    "Amazon 5k": 1.8e10,
    "Amazon 7k": 2.6e10,
}


def training_step(shape: tuple[int, int, int, int], parts: tuple[int, int, int, int]) -> tuple[Expression, Expression]:
    """New weights of two layers, in blocks: batch, features, hidden neurons and labels are cut into so many parts."""
    batch, features, hidden, labels = (
        RelationType((count,), (-(-size // count),)) for size, count in zip(shape, parts, strict=True)
    )

    def of(name: str, first: RelationType, second: RelationType) -> Input:
        return Input(name, RelationType((*first.frontier, *second.frontier), (*first.bound, *second.bound)))

    x, w1, w2 = of("X", batch, features), of("W1", features, hidden), of("W2", hidden, labels)
    target = of("T", batch, labels)
    both = ((0, 1), (0, 1))
    activation = Transform(sum_of(Join(x, w1, (1,), (0,), MATRIX_PRODUCT), [0, 2]), elementwise("relu", 1))
    output = Transform(sum_of(Join(activation, w2, (1,), (0,), MATRIX_PRODUCT), [0, 2]), elementwise("sigmoid", 1))
    error = Join(output, target, *both, SUBTRACT)
    from_left, from_right = einsum_kernel("ni,nj->ij"), einsum_kernel("nj,ij->ni")
    gradient2 = sum_of(Join(activation, error, (0,), (0,), from_left), [1, 2])
    back = sum_of(Join(error, w2, (1,), (1,), from_right), [0, 2])
    hidden_error = Join(back, Transform(activation, elementwise("sign", 1)), *both, MULTIPLY)
    gradient1 = sum_of(Join(x, hidden_error, (0,), (0,), from_left), [1, 2])
    return Join(w1, gradient1, *both, SUBTRACT), Join(w2, gradient2, *both, SUBTRACT)


DATA_PARALLEL = {name: Hashed(0) for name in ("X", "T")}
MODEL_PARALLEL = {"X": Hashed(1), "W1": Hashed(0), "W2": Hashed(1), "T": Hashed(1)}


def data_parallel_parts(sites: int) -> tuple[int, int, int, int]:
    """The batch in a part for each site; hidden neurons in so many, too, so that all sites add up gradients."""
    return sites, 1, sites, 1


def model_parallel_parts(sites: int) -> tuple[int, int, int, int]:
    """Features and labels in a part for each site; hidden neurons in so many, too."""
    return 1, sites, sites, sites


def data_parallel(
    shape: tuple[int, int, int, int], sites: int, distributions: Mapping[str, Distribution] = DATA_PARALLEL
) -> tuple[SitePlan, ...]:
    """Weights go everywhere, node site has a part of the batch, gradients are added up over all sites."""
    steps = training_step(shape, data_parallel_parts(sites))
    return by_hand(steps, lambda node: isinstance(node, Input) and node.name in ("W1", "W2"), distributions)


def model_parallel(
    shape: tuple[int, int, int, int], sites: int, distributions: Mapping[str, Distribution] = MODEL_PARALLEL
) -> tuple[SitePlan, ...]:
    """Weights are partitioned by features and by labels; the hidden layer and its errors go everywhere."""
    steps = training_step(shape, model_parallel_parts(sites))
    (new_w1, _) = steps
    assert isinstance(new_w1, Join)
    gradient = new_w1.right.inputs[0]
    hidden_error = gradient.inputs[1]
    activation = hidden_error.inputs[1].inputs[0]
    return by_hand(steps, lambda node: node in (hidden_error, activation), distributions)


def by_hand(
    steps: tuple[Expression, ...],
    goes_everywhere: Callable[[Expression], bool],
    distributions: Mapping[str, Distribution],
) -> tuple[SitePlan, ...]:
    """The plan in which some results go everywhere, and sums of terms on several sites are shuffled to be added up."""
    plans: dict[int, SitePlan] = {}
    for node in (node for step in steps for node in topological_order(step)):
        if id(node) in plans:
            continue
        if isinstance(node, Input):
            plan: SitePlan = PlacedInput(node, distributions.get(node.name, Scattered()))
        else:
            plan = local_operator(node, tuple(plans[id(operand)] for operand in node.inputs))
        if plan.pending is not None:
            every = tuple(range(plan.type.arity))
            plan = LocalAggregation(Shuffle(plan, every), every, SUM)
        plans[id(node)] = Broadcast(plan) if goes_everywhere(node) else plan
    return tuple(plans[id(step)] for step in steps)
