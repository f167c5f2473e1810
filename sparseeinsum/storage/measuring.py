"""Storage: measures the stored tensors of a plan in their present state."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import EngineError, PlanError
from sparseeinsum.language.tensors import DEMOTED, StoredTensor
from sparseeinsum.statistics.axis_counts import AxisCounts, count_entries
from sparseeinsum.statistics.block_counts import measure_blocks
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.generated_measurements import measure_generated
from sparseeinsum.statistics.kept_samples import KeptSample, take_sample
from sparseeinsum.statistics.large_tables import TableDescription, measure_large, proven
from sparseeinsum.statistics.list_columns import check_lists
from sparseeinsum.statistics.measure import Measurement, measure
from sparseeinsum.statistics.measure_sorted import measure_sorted
from sparseeinsum.statistics.measured_tensors import MeasuredTensor
from sparseeinsum.statistics.row_checks import check_rows
from sparseeinsum.statistics.scan_cache import RowVersion, stored_in
from sparseeinsum.statistics.small_tables import measure_small
from sparseeinsum.storage.catalogue import check_relation, require_tensors
from sparseeinsum.storage.kept_statistics import kept_counts, kept_measurements
from sparseeinsum.storage.row_versions import change_tokens, in_present_state, versions_in_state

_NOT_LOOKED_UP: Mapping[str, Sequence[str]] = MappingProxyType({})


def measure_all(
    stored: Mapping[str, StoredTensor], engine: Engine, column_types: Mapping[str, Sequence[str]] = _NOT_LOOKED_UP
) -> dict[str, MeasuredTensor]:
    """The tensors with their measurements, by name; those are scanned whose rows have changed since they last were.

    They are proven, unless the scans of the engine defer that.

    Args:
        stored: The tensors, by name.
        engine: The engine of the tensors.
        column_types: The types of the columns of those tensors whose columns the open transaction has looked up.

    Raises:
        CatalogueError: A table does not exist any more.
        DataError: A row is invalid; the message names the first such row.
    """
    in_state = in_present_state(stored, engine)
    tokens = change_tokens(in_state, engine)
    _check_relations({name: in_state[name] for name in stored if name not in tokens}, engine, column_types)
    versions = versions_in_state(in_state, tokens, engine)

    def measure_changed(changed: Mapping[str, RowVersion]) -> dict[str, Measurement]:
        kept = kept_measurements(changed, engine)  # whose tables are as they were loaded
        _check_relations({name: in_state[name] for name in changed if name not in kept}, engine, column_types)
        return {name: kept.get(name) or _measure(tensor, engine) for name, tensor in changed.items()}

    measurements = engine.scans.scan("measurement", versions, measure_changed)
    if not engine.scans.defers_proofs:
        measurements |= _proven(versions, measurements, engine)
    return {name: MeasuredTensor(source, measurements[name]) for name, source in stored.items()}


def _proven(
    versions: Mapping[str, RowVersion], measurements: Mapping[str, Measurement], engine: Engine
) -> dict[str, Measurement]:
    """Those measurements that were not proven before, proven."""
    unproven = {name: versions[name] for name, measurement in measurements.items() if not measurement.is_proven}
    now_proven = {name: proven(measurements[name], tensor.stored, engine) for name, tensor in unproven.items()}
    for name, measurement in now_proven.items():
        engine.scans.keep("measurement", unproven[name], measurement)
    return now_proven


def _check_relations(
    in_state: Mapping[str, RowVersion], engine: Engine, column_types: Mapping[str, Sequence[str]]
) -> None:
    """Check the relations of tensors; those of our tables again only if the state of the database differs."""

    def check(tensors: Mapping[str, RowVersion]) -> dict[str, bool]:
        for name, tensor in tensors.items():
            check_relation(engine, tensor.stored, column_types.get(name))
        return dict.fromkeys(tensors, True)

    relations = {name: tensor for name, tensor in in_state.items() if not tensor.stored.is_index_range}
    engine.scans.scan("relation", relations, check)


def _measure(tensor: RowVersion, engine: Engine) -> Measurement:
    if tensor.stored.is_index_range:
        return measure_generated(tensor.stored, tensor.version)
    if tensor.stored.lists is not None:
        check_lists(tensor.stored, engine)
    try:
        return _measure_entries(tensor, engine) or measure(tensor.stored, engine, tensor.version)
    except EngineError:
        # The error may have undone an open transaction, so that another connection looks for an invalid row.
        with suppress(EngineError), engine.another_connection() as other:
            check_rows(tensor.stored, other)
        raise


def _measure_entries(tensor: RowVersion, engine: Engine) -> Measurement | None:
    """Measure a table of entries in the way that takes least time for its size; None if it must be scanned."""
    stored = tensor.stored
    if not stored.decomposition.is_scalar or not stored.tensor.axes or stored.column_dictionaries:
        return None
    if not stored.is_owned or engine.dialect.row_number is None:  # to number rows takes as long as counting
        return _measure_large(tensor, engine)
    return _measure_small(tensor, engine) or _measure_large(tensor, engine) or _measure_sorted(tensor, engine)


def _measure_small(tensor: RowVersion, engine: Engine) -> Measurement | None:
    loaded = measure_small(tensor.stored, engine, tensor.version)
    if loaded is None:
        return None
    counts = loaded.counts
    if counts is not None:  # lest planning count all rows
        name = tensor.stored.tensor.name
        engine.scans.scan("axis counts", {name: tensor}, lambda _: {name: counts})
    return loaded.measurement


def _measure_sorted(tensor: RowVersion, engine: Engine) -> Measurement | None:
    def count(stored: Mapping[str, StoredTensor]) -> Mapping[str, tuple[AxisCounts, ...]]:
        return count_changed({name: RowVersion(source, tensor.version) for name, source in stored.items()}, engine)

    return measure_sorted(tensor.stored, engine, count, tensor.version)


def _measure_large(tensor: RowVersion, engine: Engine) -> Measurement | None:
    stored, name = tensor.stored, tensor.stored.tensor.name

    def estimate(table: TableDescription, entries: float) -> tuple[float, ...]:
        sample = _sample_of(tensor, table, entries, engine)
        counts = sample.counts
        if counts is not None:  # lest planning count all rows
            engine.scans.scan("axis counts", {name: tensor}, lambda _: {name: counts})
        return sample.distinct

    last = engine.scans.last("measurement", stored)
    measurement = measure_large(stored, engine, estimate, tensor.version)
    if measurement is None or not isinstance(last, Measurement):
        return measurement
    return replace(measurement, is_quick=last.is_quick)  # until it is proven


def _sample_of(tensor: RowVersion, table: TableDescription, entries: float, engine: Engine) -> KeptSample:
    """A sample of a large table: the last one, if the table is about as it was."""
    stored, name = tensor.stored, tensor.stored.tensor.name
    last = engine.scans.last("sample", stored)
    serves = isinstance(last, KeptSample) and last.serves(stored, table, entries, engine)
    sample = last if serves else take_sample(stored, table, entries, engine)
    return engine.scans.scan("sample", {name: tensor}, lambda _: {name: sample})[name]


def count_changed(tensors: Mapping[str, RowVersion], engine: Engine) -> dict[str, tuple[AxisCounts, ...]]:
    """The entries at every index of every axis; those tensors are read whose rows have changed since they last were."""

    def count(changed: Mapping[str, RowVersion]) -> dict[str, tuple[AxisCounts, ...]]:
        kept = kept_counts(changed, engine)
        others = {name: tensor for name, tensor in changed.items() if name not in kept}
        return {**kept, **count_entries(stored_in(others), engine)}

    return engine.scans.scan("axis counts", tensors, count)


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
