"""Storage: where tensors are on several machines, and where loading puts them."""

from collections.abc import Mapping

from sparseeinsum.decompose.clusters.costs import SMALL_BYTES, TransferCosts
from sparseeinsum.decompose.clusters.distribution import Central, Distribution, Hashed, Replicated, Scattered
from sparseeinsum.decompose.clusters.pricing import Machines
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import ShapeError
from sparseeinsum.language.tensors import Decomposition, StoredTensor, Tensor
from sparseeinsum.render.table_distribution import TableDistribution
from sparseeinsum.statistics.columns import table_by_name

REPLICATED = "replicated"  # in place of an axis, for a tensor that every machine has whole


def spread_for(
    tensor: Tensor, decomposition: Decomposition, distribute: str | None, size_bytes: int | None, engine: Engine
) -> TableDistribution | None:
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
    if not engine.dialect.distributes:
        if distribute is not None:
            raise ShapeError(
                f"tensor {tensor.name} is to be distributed ({distribute}), but {engine.title} has one machine here; "
                "leave distribute out, or connect to the coordinator of a Citus cluster"
            )
        return None
    keys = [tensor.axes[position].name for position in decomposition.promoted]
    if distribute is None:
        is_small = size_bytes is not None and size_bytes <= SMALL_BYTES
        return TableDistribution(None, is_replicated=True) if is_small or not keys else TableDistribution(keys[0])
    if distribute.lower() in keys:
        return TableDistribution(distribute.lower())
    if distribute == REPLICATED:
        return TableDistribution(None, is_replicated=True)
    raise ShapeError(
        f"tensor {tensor.name} has no key column {distribute} to distribute its rows by; it has "
        f"{', '.join(keys) or 'none'}; or pass distribute='{REPLICATED}'"
    )


def distribution_of(stored: StoredTensor, engine: Engine) -> Distribution:
    """Where the tuples of a stored tensor are: by what its table says, not by what anybody remembers."""
    if stored.is_generated or stored.column_dictionaries:  # computed when it is read
        return Central()
    spread = engine.spread_of(table_by_name(stored, engine.dialect_name))
    if spread is None:
        return Central()
    if spread.is_replicated:
        return Replicated()
    if spread.column in stored.keys:
        return Hashed(stored.decomposition.promoted[stored.keys.index(spread.column)])
    return Scattered()


def machines_of(stored: Mapping[str, StoredTensor], engine: Engine) -> Machines | None:
    """The cluster that an engine is on, and where tensors lie there; None where there is one machine."""
    cluster = engine.cluster()
    if cluster is None:
        return None
    places = {name: distribution_of(each, engine) for name, each in stored.items()}
    return Machines(TransferCosts(cluster), places)
