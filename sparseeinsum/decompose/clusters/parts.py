"""Decompose: the parts that machines have of groups, where these are put together from parts.

Source: tensor relational algebra, section 4: an aggregation of whole relations is one on every machine, a shuffle, and
one more.
"""

import math

from sparseeinsum.decompose.choice import Choice, promoted_labels, reference_tiles, result_tiles
from sparseeinsum.decompose.clusters.costs import NOTHING, Volume
from sparseeinsum.decompose.clusters.distribution import Cluster, Hashed
from sparseeinsum.decompose.clusters.ways import LocalStrategy
from sparseeinsum.decompose.clusters.wire import part_bytes, row_bytes
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.language.tensors import VALUE_COLUMN, Axis, Decomposition, Tensor, count_keys


def dividing_keys(model: CostModel, einsum: EinSum, choice: Choice, way: LocalStrategy) -> float:
    """Keys by which the work of a way is divided."""
    for operand, place in zip(einsum.operands, way.operands, strict=True):
        if isinstance(place, Hashed):
            return model.statistics[operand.tensor].blocks(
                place.axis, reference_tiles(einsum, operand, choice)[place.axis]
            )
    return math.inf


def parts_of_groups(groups: float, joined: float, shards: float) -> float:
    """How many parts so many shards have of groups together, where as many tuples fall on both by chance.

    >>> parts_of_groups(10.0, 1e6, shards=8), round(parts_of_groups(1e6, 10.0, shards=8))
    (80.0, 10)
    """
    most = groups * shards
    return most * -math.expm1(-joined / most) if most else 0.0


def parts_of(model: CostModel, einsum: EinSum, choice: Choice, label: str) -> tuple[Tensor, Decomposition]:
    """What an EinSum's groups have for each key of a label that they lack: as the result, with that key first."""
    name = einsum.output.tensor
    result, tiles = model.graph.tensors[name], dict(zip(einsum.labels, choice, strict=True))
    taken = {VALUE_COLUMN, *(axis.name.lower() for axis in result.axes)}
    names = (label + "_" * more for more in range(len(taken) + 1))
    key = next(name for name in names if name.lower() not in taken)
    bound = count_keys(tiles[label], model.graph.bound_of(einsum, label))
    parts = Tensor(name, (Axis(key, bound), *result.axes), model.evaluations[name].computed_in)
    return parts, Decomposition((1, *result_tiles(einsum, choice)))


def volume_of_parts(model: CostModel, einsum: EinSum, choice: Choice, way: LocalStrategy, cluster: Cluster) -> Volume:
    """Expected of all parts of groups that a way puts together."""
    name, tiles = einsum.output.tensor, result_tiles(einsum, choice)
    groups, joined = model.tuples(name, tiles), model.vertex_cost(einsum, choice).joined
    if way.gathers:
        size = part_bytes(model.graph.tensors[name], Decomposition(tiles))
        parts = parts_of_groups(groups, joined, cluster.parts)
        return Volume(parts, parts * size)
    if way.parts_by is None:
        return NOTHING
    gone = promoted_labels(einsum, choice) - frozenset(einsum.output.labels)
    is_pair = gone == {way.parts_by}  # then every pair of tuples is a part
    keys = dividing_keys(model, einsum, choice, way)
    parts = joined if is_pair else parts_of_groups(groups, joined, keys)
    return Volume(parts, parts * row_bytes(*parts_of(model, einsum, choice, way.parts_by)))
