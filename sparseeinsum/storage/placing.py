"""Storage: where tensors are on several machines, where loading puts them, and where plans put what they compute."""

from collections.abc import Mapping, Sequence

from sparseeinsum.algebra.clusters.distribution import Central, Distribution, Hashed, Replicated, Scattered
from sparseeinsum.algebra.clusters.placement import PlacedDefinitions, place
from sparseeinsum.algebra.operators import Schema
from sparseeinsum.algebra.translate import Definition
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import ShapeError
from sparseeinsum.language.tensors import Decomposition, StoredTensor, Tensor
from sparseeinsum.render.spreading import Spread
from sparseeinsum.statistics.columns import table_by_name

REPLICATED = "replicated"  # in place of an axis, for a tensor that every machine has whole
_MOST_REPLICATED = 8 << 20  # bytes of a tensor that goes to every machine where nobody says otherwise


def spread_for(
    tensor: Tensor, decomposition: Decomposition, distribute: str | None, size_bytes: int | None, engine: Engine
) -> Spread | None:
    """How the table of a tensor is spread over machines.

    Args:
        tensor: What is loaded.
        decomposition: How it is stored.
        distribute: What the user says: the axis whose key column distributes the rows, or `replicated`. By default, a
            tensor that is small is replicated, and another one distributed by its first key column.
        size_bytes: Of the data; None where nobody knows them before they are read.
        engine: Where.

    Raises:
        ShapeError: There is no such key column, or there is only one machine.
    """
    if engine.cluster() is None:
        if distribute is not None:
            raise ShapeError(
                f"tensor {tensor.name} is to be distributed ({distribute}), but {engine.title} has one machine here; "
                "leave distribute out, or connect to the coordinator of a Citus cluster"
            )
        return None
    keys = [tensor.axes[position].name for position in decomposition.promoted]
    if distribute is None:
        is_small = size_bytes is not None and size_bytes <= _MOST_REPLICATED
        return Spread(None, is_replicated=True) if is_small or not keys else Spread(keys[0])
    if distribute.lower() in keys:
        return Spread(distribute.lower())
    if distribute == REPLICATED:
        return Spread(None, is_replicated=True)
    raise ShapeError(
        f"tensor {tensor.name} has no key column {distribute} to distribute its rows by; it has "
        f"{', '.join(keys) or 'none'}; or pass distribute='{REPLICATED}'"
    )


def distribution_of(stored: StoredTensor, engine: Engine) -> Distribution:
    """Where the tuples of a stored tensor are: by what its table says, not by what anybody remembers."""
    if stored.is_generated or stored.looked_up:  # computed when it is read
        return Central()
    spread = engine.spread_of(table_by_name(stored, engine.dialect))
    if spread is None:
        return Central()
    if spread.is_replicated:
        return Replicated()
    if spread.column in stored.keys:
        return Hashed(stored.decomposition.promoted[stored.keys.index(spread.column)])
    return Scattered()


def placed(
    definitions: Sequence[Definition], stored: Mapping[str, StoredTensor], model: CostModel, engine: Engine
) -> PlacedDefinitions:
    """The definitions of a plan, each relation in its place; as they are where there is one machine."""
    cluster = engine.cluster()
    if cluster is None:
        return PlacedDefinitions(tuple(definitions), {})

    def size_of(schema: Schema) -> float:
        name, tiles = schema.tensor.name, schema.decomposition.tiles
        return model.tuples(name, tiles) * model.tuple_bytes(name, tiles)

    places = {name: distribution_of(each, engine) for name, each in stored.items()}
    return place(definitions, places, size_of, cluster)
