"""Statistics: stored tensors in, values out that change when their rows change; far cheaper than to measure them."""

from collections.abc import Sequence
from functools import lru_cache

from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.columns import relation_of, table_of_rows
from sparseeinsum.statistics.distributed_aggregates import aggregate_query
from sparseeinsum.statistics.measure import Executor
from sparseeinsum.statistics.templates import filled, template, union_all

# PostgreSQL hashes a record by looking up the type of each of its columns, in every row; a hash of numbers takes half
# of the time. Of arrays it looks at every element for itself, which takes several times as long as the kernel.
_HASHES_RECORDS_SLOWLY = frozenset({"postgresql", "citus"})


def fingerprints(stored: Sequence[StoredTensor], executor: Executor) -> list[object]:
    """For every stored tensor a value that changes when its rows change.

    Raises:
        EngineError: A relation cannot be read.
    """
    changing = tuple(each for each in stored if not each.is_index_range)
    rows = executor.rows(fingerprints_statement(changing, executor.dialect_name)) if changing else []
    found = iter([tuple(parts) for _, *parts in sorted(rows, key=lambda row: int(str(row[0])))])
    return [each.tensor.shape if each.is_index_range else next(found) for each in stored]


@lru_cache(maxsize=512)
def fingerprints_statement(stored: tuple[StoredTensor, ...], dialect: str) -> str:
    """The query of `fingerprints`, a row for every tensor: its number among them, then the parts of its fingerprint.

    One statement for all, as it runs before every run of a plan.
    """
    selects = []
    for place, each in enumerate(stored):
        number = exp.Literal.number(place).as_("number")
        keys = [exp.column(key, quoted=True) for key in each.keys]
        projections = [number, *fingerprint_projections(each, dialect)]
        selects.append(aggregate_query(_rows_of(each, dialect), projections, keys, dialect))
    return union_all(selects).sql(dialect)


def fingerprint_projections(stored: StoredTensor, dialect: str) -> list[exp.Expr]:
    """The parts of a tensor's fingerprint: its tuples, the types of its columns, a sum of hashes."""
    keys = [exp.column(key, quoted=True) for key in stored.keys]
    value = exp.Literal.number(1) if stored.value is None else exp.column(stored.value, quoted=True)  # no cast hides
    places = {"relation": _rows_of(stored, dialect), "value": value}
    projections = template(_template_of(stored, dialect), dialect).expressions
    return [filled(_with_columns(projection, keys, value), places) for projection in projections]


def _rows_of(stored: StoredTensor, dialect: str) -> exp.Table | exp.Subquery:
    """Rows with natural keys, where there are any: what these stand for never changes."""
    return relation_of(stored, dialect) if stored.is_query else table_of_rows(stored, dialect)


def _template_of(stored: StoredTensor, dialect: str) -> str:
    """Name of the template that hashes a tensor's rows."""
    is_plain = stored.tensor.dtype == "float64" and not stored.casts and not stored.column_dictionaries
    if not is_plain or dialect not in _HASHES_RECORDS_SLOWLY:
        return "fingerprint"
    return "fingerprint_of_numbers" if stored.decomposition.is_scalar else "fingerprint_of_arrays"


def _with_columns(projection: exp.Expr, keys: Sequence[exp.Expr], value: exp.Expr) -> exp.Expr:
    """The projection with all columns in place of `columns`, and calls that mention `each` or `key` once for every one.

    An argument that mentions `each` is repeated for all columns; a call that mentions `key` is put into itself, as its
    last argument, for all keys.
    """
    columns = [*keys, value]
    for call in list(projection.find_all(exp.Anonymous, exp.Concat)):
        arguments: list[exp.Expr] = []
        for argument in call.expressions:
            if isinstance(argument, exp.Column) and argument.name == "columns":
                arguments += [column.copy() for column in columns]
            elif isinstance(call, exp.Concat):
                arguments += [filled(argument, {"each": column}) for column in columns]
            else:
                arguments.append(argument)
        call.set("expressions", arguments)
    for call in [call for call in projection.find_all(exp.Anonymous) if _is_for_keys(call)]:
        *_, nested = call.expressions
        for key in keys:
            others = [filled(argument, {"key": key}) for argument in call.expressions[:-1]]
            nested = exp.Anonymous(this=call.name, expressions=[*others, nested])
        call.replace(nested)
    return projection


def _is_for_keys(call: exp.Anonymous) -> bool:
    """Whether a call itself, and no call within it, mentions `key`."""
    first, *_ = call.expressions
    return first.find(exp.Anonymous) is None and any(column.name == "key" for column in first.find_all(exp.Column))
