"""Statistics: measures T and V of stored tensors, and checks their rows, by one scan each.

The templates of the statements are `stats/entries.sql`, `arrays.sql` and `complex.sql`.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from sqlglot import exp

from sparseeinsum.errors import DataError
from sparseeinsum.language.tensors import DEMOTED, StoredTensor, Tensor, count_keys
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.operators.ranges import ANY_VALUE, EMPTY_RANGE, Range
from sparseeinsum.semantics.exactness import ValueFacts
from sparseeinsum.statistics.distributed_aggregates import aggregate_query
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.executor import Executor
from sparseeinsum.statistics.row_checks import check_rows
from sparseeinsum.statistics.sql_templates import fill_placeholders, placeholders, template
from sparseeinsum.statistics.tensor_rows import relation_of

_ANY_RELATION = "sparseeinsum_any_relation"  # stands for that of a tensor, in the text of a statement


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of a scan of a stored tensor.

    Attributes:
        statistics: T and V, exact.
        tuples: The number of rows of the relation, including those that store the fill.
        values: The range of the values that are not the fill, and whether some index holds the fill.
        version: A value that changes with the rows; None if it is not known.
        ascending: As in `ascending_axes`; None if it is not known.
        is_proven: Whether it is proven that no two rows have the same coordinate.
        is_quick: Whether to measure the table again takes no longer than a fingerprint of its rows.
    """

    statistics: Statistics
    tuples: int
    values: ValueFacts
    version: object
    ascending: frozenset[int] | None = field(default=None, compare=False)
    is_proven: bool = field(default=True, compare=False)
    is_quick: bool = field(default=False, compare=False)


def measure(stored: StoredTensor, executor: Executor, version: object = None) -> Measurement:
    """Measure a stored tensor by a scan.

    Args:
        stored: The tensor.
        executor: Runs the scan.
        version: The version of its rows, taken before the scan, so that rows that are added in between count as
            changed; None if it is not needed.

    Raises:
        DataError: It holds NULL, an index out of range or a repeated coordinate; the message names the first such row.
        EngineError: The database refused the scan, as for arrays of a wrong length; `check_rows` finds the row.
    """
    scan = _scan(stored, executor.dialect_name)
    (row,) = executor.rows(scan.statement)
    values = dict(zip(scan.columns, row, strict=True))
    lowest, highest = values.pop("lowest"), values.pop("highest")
    counts = {name: 0 if value is None else int(value) for name, value in values.items()}  # type: ignore[call-overload]
    if not _is_sound(stored, counts):
        check_rows(stored, executor)
        raise DataError(f"tensor {stored.tensor.name} changed while it was measured; try again")
    distinct = [0.0] * len(stored.tensor.axes)
    for position in range(len(distinct)):
        prefix = "distinct" if stored.decomposition.tiles[position] == 1 else "occupied"
        distinct[position] = float(counts[f"{prefix}_{position}"])
    tuples = {} if stored.decomposition.is_scalar else {stored.decomposition.tiles: float(counts["tuples"])}
    statistics = Statistics(float(counts["entries"]), tuple(distinct), stored.tensor.shape, counted_tuples=tuples)
    facts = values_of_entries(stored.tensor, counts["entries"], value_range(lowest, highest))
    return Measurement(statistics, counts["tuples"], facts, version)


def value_range(lowest: object, highest: object) -> Range:
    """The range of values from the lowest to the highest; the engine orders NaN above all numbers."""
    if lowest is None or highest is None:
        return EMPTY_RANGE
    low, high = (value if isinstance(value, int) else float(str(value)) for value in (lowest, highest))
    return ANY_VALUE if math.isnan(high) else Range(low, high)


def values_of_entries(tensor: Tensor, entries: float, values: Range) -> ValueFacts:
    """The facts of the values of a tensor with so many entries, whose values are in a range."""
    return ValueFacts(values, has_fill=entries < tensor.size, has_entries=entries > 0)


def measured_values(stored: StoredTensor, executor: Executor) -> ValueFacts:
    """The facts of the values of a tensor whose rows are sound, by a scan."""
    ((entries, lowest, highest),) = executor.rows(_values_scan(stored, executor.dialect_name))
    return values_of_entries(stored.tensor, int(str(entries)), value_range(lowest, highest))


@lru_cache(maxsize=512)
def _values_scan(stored: StoredTensor, dialect: str) -> str:
    projections = {projection.alias: projection for projection in scan_projections(stored, dialect)}
    columns = [projections[name] for name in ("entries", "lowest", "highest")]
    return exp.select(*columns).from_(relation_of(stored, dialect)).sql(dialect)


@dataclass(frozen=True, slots=True)
class _ScanStatement:
    """A statement that measures a tensor, and the names of its columns."""

    statement: str
    columns: tuple[str, ...]


def _scan(stored: StoredTensor, dialect: str) -> _ScanStatement:
    """The scan of a tensor, from the template; it takes longer to write than to read a small tensor."""
    if stored.is_query or stored.column_dictionaries:
        return _written_scan(stored, dialect)
    tensor = replace(stored.tensor, name=_ANY_RELATION)
    scan = _written_scan(replace(stored.as_view, tensor=tensor, relation=_ANY_RELATION), dialect)
    return replace(scan, statement=scan.statement.replace(_ANY_RELATION, relation_of(stored, dialect).sql(dialect)))


@lru_cache(maxsize=512)  # many tensors differ in nothing but their tables
def _written_scan(stored: StoredTensor, dialect: str) -> _ScanStatement:
    projections = scan_projections(stored, dialect)
    keys = [exp.column(key, quoted=True) for key in stored.keys]
    statement = aggregate_query(relation_of(stored, dialect), projections, keys, dialect)
    return _ScanStatement(statement.sql(dialect), tuple(projection.alias for projection in projections))


def scan_projections(stored: StoredTensor, dialect: str) -> list[exp.Expr]:
    """The aggregates that a scan of a tensor computes; the alias of an axis's aggregate ends in the axis's position."""
    real_name = "entries" if stored.decomposition.is_scalar else "arrays"
    name = "complex" if is_complex(stored.tensor.dtype) else real_name
    return [
        projection
        for template_projection in template(name, dialect).expressions
        for projection in _repeat(template_projection, stored, dialect)
    ]


def _repeat(projection: exp.Expr, stored: StoredTensor, dialect: str) -> Iterator[exp.Expr]:
    """The projection, repeated for every key column, every tiled axis or every demoted axis if it mentions one."""
    mentioned = {column.name for column in projection.find_all(exp.Column)}
    constants = placeholders(stored)
    decomposition = stored.decomposition
    if "axis" in mentioned:
        for position, key in zip(decomposition.promoted, stored.keys, strict=True):
            yield _fill_projection(projection, {**constants, "axis": exp.column(key, quoted=True)}, f"_{position}")
    elif "tiled" in mentioned:
        for inside, position in enumerate(decomposition.array_axes):
            if decomposition.tiles[position] != DEMOTED:
                column = exp.column(stored.keys[decomposition.promoted.index(position)], quoted=True)
                relation = relation_of(stored, dialect)
                values = {**constants, "tiled": exp.Literal.number(inside), "key": column, "relation": relation}
                yield _fill_projection(projection, values, f"_{position}")
    elif "position" in mentioned:
        for inside, position in enumerate(decomposition.array_axes):
            if decomposition.tiles[position] == DEMOTED:
                yield _fill_projection(
                    projection, {**constants, "position": exp.Literal.number(inside)}, f"_{position}"
                )
    else:
        yield _fill_projection(projection, constants, "")


def _fill_projection(projection: exp.Expr, values: Mapping[str, exp.Expr], suffix: str) -> exp.Expr:
    base = projection.alias.rsplit("_", 1)[0] if suffix else projection.alias
    return exp.alias_(fill_placeholders(projection.unalias(), values), base + suffix)


def _is_sound(stored: StoredTensor, counts: Mapping[str, int]) -> bool:
    """Whether no row is NULL or out of range, and no coordinate is repeated."""
    if counts["coordinates"] != counts["tuples"]:
        return False
    return are_rows_sound(stored, counts)


def are_rows_sound(stored: StoredTensor, counts: Mapping[str, int]) -> bool:
    """Whether no row is NULL, out of range or of a wrong length, by the numbers of a scan."""
    if counts["value_nulls"] or counts.get("wrong_lengths", 0):
        return False
    shape = stored.tensor.shape
    return counts["tuples"] == 0 or all(
        counts[f"nulls_{position}"] == 0
        and counts[f"least_{position}"] >= 0
        and counts[f"greatest_{position}"] < count_keys(stored.decomposition.tiles[position], shape[position])
        for position in stored.decomposition.promoted
    )
