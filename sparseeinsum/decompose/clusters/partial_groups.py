"""Decompose: partial results of groups on each machine, where an aggregate is computed in two phases.

Source: tensor relational algebra, section 4: an aggregation of a distributed relation is a local aggregation on every
machine, a shuffle, and another aggregation.
"""

import math

from sparseeinsum.decompose.choice import Choice, promoted_labels, reference_tiles, result_tiles
from sparseeinsum.decompose.clusters.costs import NOTHING, Volume
from sparseeinsum.decompose.clusters.local_strategies import LocalStrategy
from sparseeinsum.decompose.clusters.transfers import Cluster
from sparseeinsum.decompose.clusters.wire import part_bytes, row_bytes
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.places.distribution import Hashed
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.language.tensors import Axis, Decomposition, Tensor, count_keys, unused_axis_name


def partitioning_keys(model: CostModel, einsum: EinSum, choice: Choice, strategy: LocalStrategy) -> float:
    """Expected number of keys that a strategy divides its work by; infinite if no operand is hashed.

    On a grid, it is the whole work in units of that of the busiest cell.
    """
    if strategy.grid is not None:
        keys = keys_of_labels(model, einsum, choice)
        pieces = strategy.pieces(einsum)
        return math.prod(keys[label] / math.ceil(keys[label] / count) for label, count in pieces.items())
    for operand, distribution in zip(einsum.operands, strategy.operands, strict=True):
        if isinstance(distribution, Hashed):
            return model.statistics[operand.tensor].blocks(
                distribution.axis, reference_tiles(einsum, operand, choice)[distribution.axis]
            )
    return math.inf


def expected_partials(groups: float, joined: float, shards: float) -> float:
    """Expected number of partial results if `joined` tuples fall at random on all pairs of a group and a shard.

    >>> expected_partials(10.0, 1e6, shards=8), round(expected_partials(1e6, 10.0, shards=8))
    (80.0, 10)
    """
    most = groups * shards
    return most * -math.expm1(-joined / most) if most else 0.0


def partial_result(
    model: CostModel, einsum: EinSum, choice: Choice, strategy: LocalStrategy
) -> tuple[Tensor, Decomposition]:
    """The tensor of an EinSum's partial results, and its decomposition.

    There is one for each key of an aggregated label, or for each cell of a grid. It has the axes of the result, after
    one more axis for the key or the cell.
    """
    name, label = einsum.output.tensor, strategy.parts_by
    assert label is not None
    result, tiles = model.graph.tensors[name], dict(zip(einsum.labels, choice, strict=True))
    grid = strategy.grid
    bound = count_keys(tiles[label], model.graph.bound_of(einsum, label)) if grid is None else grid.bound
    partials = Tensor(
        name, (Axis(unused_axis_name(label, result), bound), *result.axes), model.evaluations[name].computed_in
    )
    return partials, Decomposition((1, *result_tiles(einsum, choice)))


def volume_of_partials(
    model: CostModel, einsum: EinSum, choice: Choice, strategy: LocalStrategy, cluster: Cluster
) -> Volume:
    """Expected volume of the partial results that a strategy combines."""
    name, tiles = einsum.output.tensor, result_tiles(einsum, choice)
    groups, joined = model.sizes.tuples(name, tiles), model.vertex_cost(einsum, choice).joined
    if strategy.gathers:
        size_bytes = part_bytes(model.graph.tensors[name], Decomposition(tiles))
        partials = expected_partials(groups, joined, cluster.shards)
        return Volume(partials, partials * size_bytes)
    if strategy.parts_by is None:
        return NOTHING
    partials = _expected_parts(model, einsum, choice, strategy, groups, joined)
    return Volume(partials, partials * row_bytes(*partial_result(model, einsum, choice, strategy)))


def _expected_parts(
    model: CostModel, einsum: EinSum, choice: Choice, strategy: LocalStrategy, groups: float, joined: float
) -> float:
    """Expected number of partial results that are tuples of their own, if `joined` pairs are aggregated to `groups`."""
    aggregated = promoted_labels(einsum, choice) - frozenset(einsum.output.labels)
    if strategy.grid is None:
        is_pair = aggregated == {strategy.parts_by}  # then every joined pair of tuples is a partial result
        divided = partitioning_keys(model, einsum, choice, strategy)
        return joined if is_pair else expected_partials(groups, joined, divided)
    cells = math.prod(count for label, count in strategy.pieces(einsum).items() if label in aggregated)
    keys = keys_of_labels(model, einsum, choice)
    has_all_pairs = joined > (1 - 1e-9) * groups * math.prod(keys[label] for label in aggregated)
    return groups * cells if cells == 1 or has_all_pairs else expected_partials(groups, joined, cells)


def keys_of_labels(model: CostModel, einsum: EinSum, choice: Choice) -> dict[str, int]:
    """The number of keys that each promoted label can have; labels are in the order in which operands have them."""
    tiles, promoted = dict(zip(einsum.labels, choice, strict=True)), promoted_labels(einsum, choice)
    labels = dict.fromkeys(label for reference in (*einsum.operands, einsum.output) for label in reference.labels)
    return {
        label: count_keys(tiles[label], model.graph.bound_of(einsum, label)) for label in labels if label in promoted
    }
