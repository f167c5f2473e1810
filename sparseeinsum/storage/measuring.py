"""Storage: measures the stored tensors of a plan in their present state."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import EngineError, PlanError
from sparseeinsum.language.tensors import DEMOTED, StoredTensor
from sparseeinsum.statistics.blocks import measure_blocks
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.fingerprints import fingerprints
from sparseeinsum.statistics.generated_measurements import measure_generated
from sparseeinsum.statistics.measure import check_rows, measure
from sparseeinsum.statistics.measured_tensors import MeasuredTensor
from sparseeinsum.storage.catalogue import check_relation, require_tensors


def measure_all(stored: Mapping[str, StoredTensor], engine: Engine) -> dict[str, MeasuredTensor]:
    """Scan every tensor, and return them with their measurements, by name.

    Raises:
        CatalogueError: A table does not exist any more.
        DataError: A row is invalid; the message names the first such row.
    """
    for source in stored.values():
        if not source.is_index_range:
            check_relation(engine, source)
    current_fingerprints = fingerprints(list(stored.values()), engine)
    inputs = {}
    for (name, source), fingerprint in zip(stored.items(), current_fingerprints, strict=True):
        if source.is_index_range:
            inputs[name] = MeasuredTensor(source, measure_generated(source, fingerprint))
            continue
        try:
            inputs[name] = MeasuredTensor(source, measure(source, engine, fingerprint))
        except EngineError:
            # The error may have undone an open transaction, so that another connection looks for an invalid row.
            with suppress(EngineError), engine.another_connection() as other:
                check_rows(source, other)
            raise
    return inputs


def measure_tensor(name: str, tilings: Sequence[tuple[int, ...]], engine: Engine) -> Statistics:
    """Return the present number of entries, distinct counts and tuples of a stored tensor.

    Args:
        name: The name of the tensor.
        tilings: Decompositions in which tuples are counted, a tile for every axis.
        engine: The engine of the tensor.

    Raises:
        CatalogueError: There is no such tensor, or its table does not exist any more.
        DataError: A row is invalid.
        PlanError: A tiling does not have one tile for every axis.
    """
    with engine.protected():
        return _measured_tensor(name, tilings, engine)


def _measured_tensor(name: str, tilings: Sequence[tuple[int, ...]], engine: Engine) -> Statistics:
    stored = require_tensors(engine, [name])
    for tiles in tilings:
        if len(tiles) != len(stored[name].tensor.axes) or min(tiles, default=0) < DEMOTED:
            axes = ", ".join(axis.name for axis in stored[name].tensor.axes)
            raise PlanError(f"{tuple(tiles)} are no tiles of {name}; give each axis ({axes}) one, or 0 to demote it")
    statistics = measure_all(stored, engine)[name].statistics
    counted = {**statistics.counted_tuples, **measure_blocks(stored[name], tilings, engine)}
    return replace(statistics, counted_tuples=counted)
