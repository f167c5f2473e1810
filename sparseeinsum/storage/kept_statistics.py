"""Storage: keeps in the catalogue what loading finds of a tensor, for all processes, until its table changes.

What is kept has a hash of the tensor's definition, the state of its table and the statistics. It is used only where all
are as they were; a row of the catalogue that somebody has edited is not.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Mapping
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
from sparseeinsum.storage.catalogue import Catalogue
from sparseeinsum.storage.catalogue_rows import recorded_values
from sparseeinsum.storage.catalogue_tables import AXIS_COUNTS, STATISTICS, TABLE, is_present, tensor_columns

Result = TypeVar("Result")

_BYTES = {"duckdb": "strlen", "postgresql": "octet_length"}  # which read no more of a text than its length
_LONG = 16_384  # bytes of counts that are read only where they are needed
_FEW_TENSORS = 64  # of which to read all takes less time than to look for some
_MOST_OTHERS = 2  # times as many tensors as are looked for, of which that holds, too


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
    texts = {name: statistics for name, (statistics, _) in _kept_texts(tensors, engine).items()}
    return _valid(STATISTICS, texts, tensors, engine, _read_measurement)


def kept_counts(tensors: Mapping[str, RowVersion], engine: Engine) -> dict[str, tuple[AxisCounts, ...]]:
    """The entries at every index of every axis, of those tensors whose tables are as they were loaded."""
    texts = {name: counts for name, (_, counts) in _kept_texts(tensors, engine).items()}
    long = [name for name, counts in texts.items() if counts is None]
    if long:
        texts |= {str(name): str(counts) for name, counts in engine.rows(_query(AXIS_COUNTS, long))}
    return _valid(AXIS_COUNTS, texts, tensors, engine, _read_counts)


def _kept_texts(tensors: Mapping[str, RowVersion], engine: Engine) -> dict[str, tuple[str, str | None]]:
    """What the catalogue keeps of tensors whose changes are recorded: statistics, and counts; None for long ones.

    One query reads both, since the counts of a tensor are needed soon after its measurement.
    """

    def read(changed: Mapping[str, RowVersion]) -> dict[str, tuple[str, str | None]]:
        columns = tensor_columns(engine)
        texts: dict[str, tuple[str, str | None]] = dict.fromkeys(changed, ("", ""))
        if columns is None or not is_present(columns):
            return texts
        is_long = f"{_BYTES[engine.dialect_name]}({AXIS_COUNTS}) > {_LONG}"
        selected = f"{STATISTICS}, CASE WHEN {is_long} THEN NULL ELSE coalesce({AXIS_COUNTS}, '') END"
        few = max(_FEW_TENSORS, _MOST_OTHERS * len(changed))
        is_small = engine.state_token() is not None and len(Catalogue(engine).all()) <= few
        for name, statistics, counts in engine.rows(_query(selected, None if is_small else changed)):
            if name in changed:
                texts[str(name)] = str(statistics or ""), None if counts is None else str(counts)
        return texts

    recorded = {name: tensor for name, tensor in tensors.items() if _may_be_as_loaded(tensor.version)}
    return engine.scans.scan("kept statistics", recorded, read)


def _may_be_as_loaded(version: object) -> bool:
    """Whether a table of which changes are recorded may have the rows that it was loaded with."""
    return isinstance(version, ChangeToken) and version.state.changes <= 1


def _query(selected: str, names: Iterable[str] | None) -> str:
    """The query of the names and of something else of tensors; of all tensors, which takes less time, for None."""
    condition = "" if names is None else f" WHERE name IN ({', '.join(map(literal, names))})"
    return f"SELECT name, {selected} FROM {SCHEMA}.{TABLE}{condition}"


def _valid(
    column: str,
    texts: Mapping[str, str | None],
    tensors: Mapping[str, RowVersion],
    engine: Engine,
    read: Callable[[str, RowVersion], Result],
) -> dict[str, Result]:
    """What those texts say that a column has for tensors as they are."""
    results = {}
    for name, kept in texts.items():
        tensor = tensors[name]
        assert isinstance(tensor.version, ChangeToken)
        found_hash, _, text = (kept or "").partition(" ")
        if text and found_hash == _hash(column, tensor.stored, tensor.version.state, text, engine.dialect_name):
            results[name] = read(text, tensor)
    return results


def _hash(column: str, stored: StoredTensor, table: TableState, text: str, dialect: str) -> str:
    state = table.definition, table.log, table.changes, table.number
    parts = [column, recorded_values(stored, dialect), state, text]
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
