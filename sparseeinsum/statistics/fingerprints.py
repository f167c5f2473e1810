"""Statistics: fingerprints of stored tensors, which change when their rows change; far cheaper than measuring them."""

from collections.abc import Sequence
from functools import lru_cache

from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.distributed_aggregates import aggregate_query
from sparseeinsum.statistics.executor import Executor
from sparseeinsum.statistics.sql_templates import fill_placeholders, template, union_all
from sparseeinsum.statistics.tensor_rows import relation_of, table_of_rows

# PostgreSQL looks up the type of every column in every row to hash a record; hashing numbers takes half of the time. It
# hashes arrays element by element, which takes several times as long as the kernel.
_HASHES_RECORDS_SLOWLY = frozenset({"postgresql", "citus"})


def fingerprints(stored: Sequence[StoredTensor], executor: Executor) -> list[object]:
    """For every stored tensor, a value that changes when its rows change.

    Raises:
        EngineError: A relation cannot be read.
    """
    changing = tuple(source for source in stored if not source.is_index_range)
    rows = executor.rows(fingerprints_statement(changing, executor.dialect_name)) if changing else []
    hashes = iter([tuple(row_hashes) for _, *row_hashes in sorted(rows, key=lambda row: int(str(row[0])))])
    return [source.tensor.shape if source.is_index_range else next(hashes) for source in stored]


@lru_cache(maxsize=512)
def fingerprints_statement(stored: tuple[StoredTensor, ...], dialect: str) -> str:
    """The query of `fingerprints`, with a row for every tensor: its number, then the parts of its fingerprint.

    It is a single statement, because it runs before every run of a plan.
    """
    selects = []
    for position, source in enumerate(stored):
        number = exp.Literal.number(position).as_("number")
        keys = [exp.column(key, quoted=True) for key in source.keys]
        projections = [number, *fingerprint_projections(source, dialect)]
        selects.append(aggregate_query(_fingerprinted_rows(source, dialect), projections, keys, dialect))
    return union_all(selects).sql(dialect)


def fingerprint_projections(stored: StoredTensor, dialect: str) -> list[exp.Expr]:
    """The parts of a tensor's fingerprint: the number of its tuples, the types of its columns, and a sum of hashes."""
    keys = [exp.column(key, quoted=True) for key in stored.keys]
    value = (
        exp.Literal.number(1) if stored.value is None else exp.column(stored.value, quoted=True)
    )  # without a cast, which could hide changes
    placeholders = {"relation": _fingerprinted_rows(stored, dialect), "value": value}
    projections = template(_template_name(stored, dialect), dialect).expressions
    return [
        fill_placeholders(_with_columns(projection.copy(), keys, value), placeholders) for projection in projections
    ]


def column_types(stored: StoredTensor, executor: Executor) -> str | None:
    """The types of a tensor's columns, as its fingerprint has them, without a hash of rows; None if it has no rows.

    Raises:
        EngineError: The relation cannot be read.
    """
    dialect = executor.dialect_name
    tuples, types, _ = fingerprint_projections(stored, dialect)
    keys = [exp.column(key, quoted=True) for key in stored.keys]
    query = aggregate_query(_fingerprinted_rows(stored, dialect), [tuples, types], keys, dialect)
    ((_, names_of_types),) = executor.rows(query)
    return None if names_of_types is None else str(names_of_types)


def _fingerprinted_rows(stored: StoredTensor, dialect: str) -> exp.Table | exp.Subquery:
    """The rows that a fingerprint covers; they have natural keys, because the indices of these never change."""
    return relation_of(stored, dialect) if stored.is_query else table_of_rows(stored, dialect)


def _template_name(stored: StoredTensor, dialect: str) -> str:
    """The name of the template that hashes a tensor's rows."""
    is_plain = stored.tensor.dtype == "float64" and not stored.casts and not stored.column_dictionaries
    if not is_plain or dialect not in _HASHES_RECORDS_SLOWLY:
        return "fingerprint"
    return "fingerprint_of_numbers" if stored.decomposition.is_scalar else "fingerprint_of_arrays"


def _with_columns(projection: exp.Expr, keys: Sequence[exp.Expr], value: exp.Expr) -> exp.Expr:
    """The projection with the tensor's columns in place of the placeholders `columns`, `any_column` and `key`.

    All columns replace `columns`. An argument that contains `any_column` is repeated for every column. A call that has
    `key` is nested for all keys: each call is the last argument of the next one.
    """
    columns = [*keys, value]
    for call in list(projection.find_all(exp.Anonymous, exp.Concat)):
        arguments: list[exp.Expr] = []
        for argument in call.expressions:
            if isinstance(argument, exp.Column) and argument.name == "columns":
                arguments += [column.copy() for column in columns]
            elif isinstance(call, exp.Concat):
                arguments += [fill_placeholders(argument, {"any_column": column}) for column in columns]
            else:
                arguments.append(argument)
        call.set("expressions", arguments)
    for call in [call for call in projection.find_all(exp.Anonymous) if _is_for_keys(call)]:
        *_, nested = call.expressions
        for key in keys:
            others = [fill_placeholders(argument, {"key": key}) for argument in call.expressions[:-1]]
            nested = exp.Anonymous(this=call.name, expressions=[*others, nested])
        call.replace(nested)
    return projection


def _is_for_keys(call: exp.Anonymous) -> bool:
    """Whether `key` occurs in the first argument of a call, and not in a nested call."""
    first, *_ = call.expressions
    return first.find(exp.Anonymous) is None and any(column.name == "key" for column in first.find_all(exp.Column))
