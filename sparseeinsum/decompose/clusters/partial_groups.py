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
from sparseeinsum.language.tensors import VALUE_COLUMN, Axis, Decomposition, Tensor, count_keys


def partitioning_keys(model: CostModel, einsum: EinSum, choice: Choice, strategy: LocalStrategy) -> float:
    """Expected number of keys that a strategy divides its work by; infinite if no operand is hashed."""
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


def partial_result(model: CostModel, einsum: EinSum, choice: Choice, label: str) -> tuple[Tensor, Decomposition]:
    """The tensor of an EinSum's partial results, one for each key of an aggregated label, and its decomposition.

    It has the axes of the result, after one more axis for the key.
    """
    name = einsum.output.tensor
    result, tiles = model.graph.tensors[name], dict(zip(einsum.labels, choice, strict=True))
    used_names = {VALUE_COLUMN, *(axis.name.lower() for axis in result.axes)}
    candidates = (label + "_" * count for count in range(len(used_names) + 1))
    key = next(candidate for candidate in candidates if candidate.lower() not in used_names)
    bound = count_keys(tiles[label], model.graph.bound_of(einsum, label))
    partials = Tensor(name, (Axis(key, bound), *result.axes), model.evaluations[name].computed_in)
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
    aggregated = promoted_labels(einsum, choice) - frozenset(einsum.output.labels)
    is_pair = aggregated == {strategy.parts_by}  # then every joined pair of tuples is a partial result
    keys = partitioning_keys(model, einsum, choice, strategy)
    partials = joined if is_pair else expected_partials(groups, joined, keys)
    return Volume(partials, partials * row_bytes(*partial_result(model, einsum, choice, strategy.parts_by)))
