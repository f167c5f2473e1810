"""Storage: the distribution of stored tensors over the machines of a cluster."""

from collections.abc import Mapping

from sparseeinsum.decompose.clusters.cluster_tasks import Machines
from sparseeinsum.decompose.clusters.costs import SMALL_BYTES, TransferCosts
from sparseeinsum.decompose.places.distribution import Central, Distribution, Hashed, Replicated, Scattered
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import ShapeError
from sparseeinsum.language.tensors import Decomposition, StoredTensor, Tensor
from sparseeinsum.render.table_distribution import TableDistribution
from sparseeinsum.statistics.columns import table_by_name

REPLICATED = "replicated"  # users say this in place of an axis for a tensor that every machine has


def choose_distribution(
    tensor: Tensor, decomposition: Decomposition, distribute: str | None, size_bytes: int | None, engine: Engine
) -> TableDistribution | None:
    """Return how the table of a new tensor is distributed over machines; None if there is only one machine.

    Args:
        tensor: The tensor.
        decomposition: The decomposition in which it is stored.
        distribute: The user's choice: the axis whose key column distributes the rows, or `replicated`. By default, a
            small tensor is replicated, and others are distributed by their first key column.
        size_bytes: The size of the data; None if it is unknown before they are read.
        engine: The engine of the tensor.

    Raises:
        ShapeError: There is no such key column, or there is only one machine and the user makes a choice.
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
    """Return where the tuples of a stored tensor are, according to the present state of its table."""
    if stored.is_generated or stored.column_dictionaries:  # computed when it is read
        return Central()
    distribution = engine.table_distribution(table_by_name(stored, engine.dialect_name))
    if distribution is None:
        return Central()
    if distribution.is_replicated:
        return Replicated()
    if distribution.column in stored.keys:
        return Hashed(stored.decomposition.promoted[stored.keys.index(distribution.column)])
    return Scattered()


def machines_of(stored: Mapping[str, StoredTensor], engine: Engine, counts_bytes: bool = False) -> Machines | None:
    """Return the cluster of an engine and the distributions of tensors in it; None if there is only one machine.

    Args:
        stored: The tensors.
        engine: The engine.
        counts_bytes: Whether plans are to send few bytes, instead of taking few seconds.
    """
    cluster = engine.cluster()
    if cluster is None:
        return None
    places = {name: distribution_of(tensor, engine) for name, tensor in stored.items()}
    return Machines(TransferCosts(cluster), places, counts_bytes)
