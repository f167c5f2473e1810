"""Storage: keeps in the catalogue what loading finds of a tensor, for all processes, until its table changes.

What is kept has a hash of the tensor's definition, the state of its table and the statistics. It is used only where all
are as they were; a row of the catalogue that somebody has edited is not.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import astuple
from typing import TypeVar

import numpy as np

from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.quoting import literal
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.operators.ranges import Range
from sparseeinsum.semantics.exactness import ValueFacts
from sparseeinsum.statistics.axis_counts import AxisCounts
from sparseeinsum.statistics.dictionary_queries import SCHEMA
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.loaded_measurements import LoadedMeasurement
from sparseeinsum.statistics.measure import Measurement
from sparseeinsum.statistics.scan_cache import ChangeToken, RowVersion, TableState
from sparseeinsum.storage.catalogue_rows import recorded_values
from sparseeinsum.storage.catalogue_tables import AXIS_COUNTS, STATISTICS, TABLE, is_present, tensor_columns

Result = TypeVar("Result")


def statistics_to_keep(
    stored: StoredTensor, table: TableState, loaded: LoadedMeasurement, dialect: str
) -> dict[str, str]:
    """The columns of the catalogue that keep what was found of a tensor while it was loaded.

    Args:
        stored: The tensor.
        table: Its table after loading.
        loaded: What was found.
        dialect: The dialect of the database.
    """
    kept = {STATISTICS: _written_measurement(loaded.measurement)}
    if loaded.counts is not None:
        kept[AXIS_COUNTS] = _written_counts(loaded.counts)
    return {column: f"{_hash(column, stored, table, text, dialect)} {text}" for column, text in kept.items()}


def kept_measurements(tensors: Mapping[str, RowVersion], engine: Engine) -> dict[str, Measurement]:
    """The measurements of those tensors whose tables are as they were loaded."""
    return _kept(STATISTICS, tensors, engine, _read_measurement)


def kept_counts(tensors: Mapping[str, RowVersion], engine: Engine) -> dict[str, tuple[AxisCounts, ...]]:
    """The entries at every index of every axis, of those tensors whose tables are as they were loaded."""
    return _kept(AXIS_COUNTS, tensors, engine, _read_counts)


def _kept(
    column: str, tensors: Mapping[str, RowVersion], engine: Engine, read: Callable[[str, RowVersion], Result]
) -> dict[str, Result]:
    recorded = {name: tensor for name, tensor in tensors.items() if isinstance(tensor.version, ChangeToken)}
    columns = tensor_columns(engine) if recorded else None
    if columns is None or not is_present(columns):
        return {}
    names = ", ".join(map(literal, recorded))
    rows = engine.rows(f"SELECT name, {column} FROM {SCHEMA}.{TABLE} WHERE name IN ({names})")
    results = {}
    for name, kept in rows:
        tensor = recorded[str(name)]
        assert isinstance(tensor.version, ChangeToken)
        found_hash, _, text = str(kept or "").partition(" ")
        if found_hash == _hash(column, tensor.stored, tensor.version.state, text, engine.dialect_name):
            results[str(name)] = read(text, tensor)
    return results


def _hash(column: str, stored: StoredTensor, table: TableState, text: str, dialect: str) -> str:
    parts = [column, recorded_values(stored, dialect), astuple(table), text]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _written_measurement(measurement: Measurement) -> str:
    statistics, values = measurement.statistics, measurement.values
    counted = [[list(tiles), tuples] for tiles, tuples in statistics.counted_tuples.items()]
    content = {
        "entries": statistics.entries,
        "distinct": statistics.distinct,
        "counted_tuples": counted,
        "tuples": measurement.tuples,
        "values": [values.entries.low, values.entries.high, values.entries.may_be_nan],
        "has_fill": values.has_fill,
        "ascending": None if measurement.ascending is None else sorted(measurement.ascending),
    }
    return json.dumps(content)


def _read_measurement(text: str, tensor: RowVersion) -> Measurement:
    content = json.loads(text)
    counted = {tuple(tiles): tuples for tiles, tuples in content["counted_tuples"]}
    shape = tensor.stored.tensor.shape
    statistics = Statistics(content["entries"], tuple(content["distinct"]), shape, counted_tuples=counted)
    values = ValueFacts(Range(*content["values"]), content["has_fill"], has_entries=content["entries"] > 0)
    ascending = content.get("ascending")  # which earlier versions do not keep
    ascending = None if ascending is None else frozenset(ascending)
    return Measurement(statistics, content["tuples"], values, tensor.version, ascending)


def _written_counts(counts: tuple[AxisCounts, ...]) -> str:
    """Integers of 64 bits, one for every index of every axis, compressed."""
    numbers = np.concatenate([axis.entries for axis in counts]).astype("<i8")
    return base64.b64encode(zlib.compress(numbers.tobytes(), level=1)).decode()


def _read_counts(text: str, tensor: RowVersion) -> tuple[AxisCounts, ...]:
    numbers = np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i8").astype(np.float64)
    axes = np.split(numbers, np.cumsum(tensor.stored.tensor.shape)[:-1])
    return tuple(AxisCounts(entries, (entries > 0).astype(np.float64)) for entries in axes)
