"""Storage: the tensors that a program reads: tables that it names, those of the catalogue, and tables of their names.

What the program says of a tensor counts before all else: the table, view or file, and columns of indices and values.
Where the catalogue has no tensor of a name, the table of that name that a result went into is read as that result. Any
other table or view is read as a tensor if its columns are as many of whole numbers as the program gives it labels, and
then one of values. Other columns are an error that says how to declare the tensor; nothing is guessed.

What no row has is 0, unless the program declares another fill. The bound of an axis is the one that the program gives
it, or that of a tensor of the catalogue that shares a label with it; else one more than the greatest index of all such
tables that share a label with it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from sqlglot import exp

from sparseeinsum.engines.engine import Column, Engine, Relation
from sparseeinsum.errors import CatalogueError, SparseEinsumError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.matrix_statements import Shapes
from sparseeinsum.language.syntax import Import
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.columns import dtype_of, is_index_type
from sparseeinsum.storage.access import check_readable, check_relation_readable
from sparseeinsum.storage.catalogue import Catalogue, find
from sparseeinsum.storage.existing_tables import greatest_indices, index_columns, relation_as_tensor, relation_named
from sparseeinsum.storage.natural_keys import key_type_of
from sparseeinsum.storage.table_comments import tensor_from_comment
from sparseeinsum.storage.table_names import table_of_relation
from sparseeinsum.storage.tensor_description import TensorDescription

_Place = tuple[str, int]  # a tensor, and the position of one of its axes


Report = Callable[[str, SparseEinsumError], None]  # (name of a tensor, why it cannot be had)


def _fail(_: str, error: SparseEinsumError) -> None:
    raise error


def stored_inputs(program: Program, engine: Engine, report: Report = _fail) -> dict[str, StoredTensor]:
    """The tensors that a program reads, by name.

    Args:
        program: What reads them.
        engine: Where they are.
        report: Told of those that cannot be had; if it does not raise, they are left out.

    Raises:
        CatalogueError: There is no such tensor, nor a table that is one as it stands; or no such table or column.
        RightsError: To read one would run what other roles wrote.
        DataError: The values of such a table have a type that tensors cannot have.
    """
    known = Catalogue(engine).all()
    imported = {each.tensor: each for each in program.imported}
    found: dict[str, StoredTensor] = {}
    tables: dict[str, _Table] = {}
    for name in program.inputs:
        try:
            table = _table_of(program, name, imported.get(name), known, engine)
            if isinstance(table, _Table):
                tables[name] = table
            else:
                found[name] = table
        except SparseEinsumError as error:
            report(name, error)
    check_readable(engine, found.values())
    bounds = _bounds(program, found, tables, engine) if tables else {}
    for name, table in tables.items():
        try:
            found[name] = table.as_tensor(bounds, engine)
        except SparseEinsumError as error:
            report(name, error)
    return found


def shapes_in(engine: Engine) -> Shapes:
    """What a database knows of the axes of tensors, for programs that give them no labels.

    A table that is read as a tensor has an axis for each column but that of values; its bounds are not known yet.
    """
    catalogue = cache(Catalogue(engine).all)

    def shape(name: str) -> Sequence[int | None] | None:
        with engine.protected():
            return known_shape(name)

    def known_shape(name: str) -> Sequence[int | None] | None:
        relations = _relations(name, catalogue(), engine)
        if not relations:
            return catalogue()[name].tensor.shape if name in catalogue() else None
        result = tensor_from_comment(engine, name, relations[0])
        if result is not None:
            return result.tensor.shape
        columns = engine.columns(exp.select("*").from_(table_of_relation(relations[0], engine.dialect_name)))
        return (None,) * (len(columns) - 1)

    return shape


def _relations(name: str, known: Collection[str], engine: Engine) -> Sequence[Relation]:
    """Tables and views of a name that no tensor of the catalogue has."""
    found = [] if any(other.lower() == name.lower() for other in known) else engine.relations_named(name)
    for relation in found[:1]:
        table = table_of_relation(relation, engine.dialect_name)
        check_relation_readable(engine, table.sql(engine.dialect_name), table)
    return found


@dataclass(frozen=True, slots=True)
class _Table:
    """A table, view or file that is read as a tensor.

    Attributes:
        description: What the program says of the tensor; its bounds come later.
        relation: The relation, as the user names it.
        table: The relation.
        keys: Columns of indices.
        value: Column of values; None where every row counts as 1.
        given: Bounds that the program gives with the table; None where it does not.
    """

    description: TensorDescription
    relation: str
    table: exp.Table
    keys: tuple[str, ...]
    value: str | None
    given: tuple[int | None, ...]

    def as_tensor(self, bounds: Mapping[_Place, int], engine: Engine) -> StoredTensor:
        """The tensor, with the bounds that its axes have in a program."""
        name = self.description.name
        shape = [bounds[name, position] if bound is None else bound for position, bound in enumerate(self.given)]
        description = replace(self.description, shape=shape)
        stored, _ = relation_as_tensor(engine, description, self.relation, self.table, self.keys, self.value)
        return stored


def _imported(statement: Import, engine: Engine) -> _Table:
    """The table that the program names."""
    axes = [axis for axis, _ in statement.axes]
    fill = 0 if statement.fill is None else statement.fill
    description = TensorDescription(statement.tensor, axes, None, fill, statement.dtype)
    table = relation_named(engine, statement.relation)
    keys = index_columns(engine, statement.tensor, statement.relation, table, statement.index)
    given = tuple(bound for _, bound in statement.axes)
    return _Table(description, statement.relation, table, keys, statement.value, given)


def _table_of(
    program: Program, name: str, imported: Import | None, known: Mapping[str, StoredTensor], engine: Engine
) -> _Table | StoredTensor:
    """The table that a tensor is read from, or the tensor itself where all is known of it."""
    if imported is not None:
        return _imported(imported, engine)
    relations = _relations(name, known, engine)
    result = tensor_from_comment(engine, name, relations[0]) if relations else None
    if result is not None:
        return result
    ranks = [len(labels) for tensor, labels in _references(program) if tensor == name]
    return _named(program, name, ranks[0], relations, engine) if ranks and relations else find(known, name)


def _named(program: Program, name: str, rank: int, relations: Sequence[Relation], engine: Engine) -> _Table:
    """The table of a name, to which the program gives so many labels."""
    table = table_of_relation(relations[0], engine.dialect_name)
    columns = engine.columns(exp.select("*").from_(table.copy()))
    *index, value = columns
    is_tensor = len(index) == rank and all(is_index_type(column.sql_type) for column in index)
    if not (is_tensor and dtype_of(value.sql_type)):
        raise CatalogueError(_how_to_declare(name, table.sql(engine.dialect_name), columns, rank))
    declared = next((each for each in program.declared if each.tensor.name == name), None)
    fill = declared.tensor.fill if declared is not None and declared.has_fill else 0
    dtype = declared.tensor.dtype if declared is not None and declared.has_dtype else None
    description = TensorDescription(name, None, None, fill, dtype)
    keys = tuple(column.name for column in index)
    return _Table(description, name, table, keys, value.name, (None,) * len(keys))


def _how_to_declare(name: str, relation: str, columns: list[Column], rank: int) -> str:
    whole = [column.name for column in columns if is_index_type(column.sql_type)][:rank]
    natural = [column.name for column in columns if key_type_of(column.sql_type)][:rank]
    chosen = natural if len(whole) < rank == len(natural) else whole
    others = [column.name for column in columns if column.name not in chosen and dtype_of(column.sql_type)]
    shown = ", ".join(f"{column.name} {column.sql_type}" for column in columns)
    index = ", ".join(map(repr, chosen)) if len(chosen) == rank else "..."
    value = f", {others[0]!r}" if others else ""
    keys = {column: column.lower() for column in chosen if column not in whole}
    value += f", keys={keys!r}" if keys else ""
    return (
        f"there is no tensor {name} in this database, and the table {relation} is none as it stands: for {rank} labels "
        f"it needs {rank} columns of whole numbers, one of values after them, and nothing else, but it has {shown}; "
        f"say what is what with tensor_from_table({name!r}, {relation!r}, [{index}]{value})"
    )


def _references(program: Program) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Operands of all statements, with their labels."""
    yield from ((operand.tensor, operand.labels) for einsum in program.einsums for operand in einsum.operands)


def _bounds(
    program: Program, found: Mapping[str, StoredTensor], tables: Mapping[str, _Table], engine: Engine
) -> dict[_Place, int]:
    """The bound of every axis of every table that is read as a tensor."""
    places = {(name, position) for name, table in tables.items() for position in range(len(table.keys))}
    group_of = _groups(program)
    known = [each.tensor for each in program.declared] + [stored.tensor for stored in found.values()]
    shapes: list[tuple[str, Sequence[int | None]]] = [(tensor.name, tensor.shape) for tensor in known]
    shapes += [(name, table.given) for name, table in tables.items()]
    fixed = {
        group_of.get((name, position), (name, position)): bound
        for name, shape in shapes
        for position, bound in enumerate(shape)
        if bound is not None
    }
    least: dict[_Place, int] = {}
    for name, table in tables.items():
        groups = [group_of.get((name, position), (name, position)) for position in range(len(table.keys))]
        if all(group in fixed for group in groups):
            continue
        for group, bound in zip(groups, greatest_indices(engine, table.table, table.keys), strict=True):
            least[group] = max(bound, least.get(group, 0))
    grouped = {place: group_of.get(place, place) for place in places}
    return {place: fixed.get(group, least.get(group, 0)) for place, group in grouped.items()}


def _groups(program: Program) -> dict[_Place, _Place]:
    """For every axis that has a label somewhere, one that stands for all axes with which it shares labels."""
    stands_for: dict[_Place, _Place] = {}

    def top(place: _Place) -> _Place:
        while stands_for.setdefault(place, place) != place:
            place = stands_for[place]
        return place

    for einsum in program.einsums:
        first: dict[str, _Place] = {}
        for reference in (*einsum.operands, einsum.output):
            for position, label in enumerate(reference.labels):
                place = top((reference.tensor, position))
                stands_for[place] = top(first.setdefault(label, place))
    return {place: top(place) for place in list(stands_for)}
