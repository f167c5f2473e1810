"""Storage: finds the tensors that a program reads.

A name is looked up in this order:

1. The program imports it from a table, view or file, and says which columns hold indices and values.
2. The catalogue has a tensor of that name.
3. A table of that name has a comment that says which tensor it holds, because a result was written into it.
4. A table or view of that name has as many integer columns as the program gives it labels, then one column of values.

A table with other columns is an error, whose message says how to declare the tensor; nothing is guessed.

Entries that no row has are 0, unless the program declares another fill. The bound of an axis of a table is the one that
the program declares, or that of a tensor of the catalogue that shares a label with it; else it is one more than the
greatest index in all tables that share a label with it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

from sqlglot import exp

from sparseeinsum.engines.engine import Column, DatabaseRelation, Engine
from sparseeinsum.errors import CatalogueError, SparseEinsumError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.matrix_statements import Shapes
from sparseeinsum.language.syntax import Import
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.columns import dtype_of, is_index_type
from sparseeinsum.storage.access_rights import check_readable, check_relation_readable
from sparseeinsum.storage.catalogue import Catalogue, find_tensor
from sparseeinsum.storage.existing_tables import (
    RelationTensor,
    UserRelation,
    greatest_indices,
    index_columns,
    read_relation,
    relation_as_tensor,
    relation_named,
)
from sparseeinsum.storage.natural_keys import key_type_of
from sparseeinsum.storage.table_comments import tensor_from_comment
from sparseeinsum.storage.table_names import table_of_relation
from sparseeinsum.storage.tensor_description import TensorDescription

NOTHING_SUPPLIED: Mapping[str, StoredTensor] = MappingProxyType({})

_AxisPosition = tuple[str, int]  # the name of a tensor and the position of one of its axes


InputErrorReport = Callable[
    [str, SparseEinsumError], None
]  # called with the name of a tensor and why it cannot be read


def _raise_error(_: str, error: SparseEinsumError) -> None:
    raise error


@dataclass(frozen=True, slots=True)
class ProgramInputs:
    """The tensors that a program reads.

    Attributes:
        stored: The tensors, by name.
        column_types: The SQL types of the columns, as in `RelationTensor`, of those that were looked up by their
            columns.
    """

    stored: dict[str, StoredTensor]
    column_types: dict[str, tuple[str, ...]]


def stored_inputs(
    program: Program,
    engine: Engine,
    report: InputErrorReport = _raise_error,
    supplied: Mapping[str, StoredTensor] = NOTHING_SUPPLIED,
) -> ProgramInputs:
    """Return the tensors that a program reads; every name is looked up once.

    Args:
        program: The program.
        engine: The engine of the tensors.
        report: Called for a tensor that cannot be read; if it does not raise, the tensor is left out.
        supplied: Relations that are read in place of stored tensors, by their names; they are returned as they are.

    Raises:
        CatalogueError: There is no such tensor, and no table that can be read as one; or no such table or column.
        RightsError: To read a tensor would run code of other roles.
        DataError: The values of a table have a type that tensors cannot have.
    """
    catalogued = Catalogue(engine).all()
    imported = {statement.tensor: statement for statement in program.imported}
    ranks = _ranks(program)
    tensors: dict[str, StoredTensor] = {}
    tables: dict[str, _TableInput] = {}
    for name in program.inputs:
        if name in supplied:
            continue
        try:
            statement = imported.get(name)
            if statement is None:
                table = _input_by_name(program, name, ranks.get(name), catalogued, engine)
            else:
                table = _imported(statement, engine)
            if isinstance(table, _TableInput):
                tables[name] = table
            else:
                tensors[name] = table
        except SparseEinsumError as error:
            report(name, error)
    check_readable(engine, tensors.values())
    tensors |= {name: supplied[name] for name in program.inputs if name in supplied}
    bounds = _bounds(program, tensors, tables, engine) if tables else {}
    column_types: dict[str, tuple[str, ...]] = {}
    for name, table in tables.items():
        try:
            described = table.as_tensor(bounds, engine)
            tensors[name], column_types[name] = described.stored, described.column_types
        except SparseEinsumError as error:
            report(name, error)
    return ProgramInputs(tensors, column_types)


def shapes_in(engine: Engine) -> Shapes:
    """Return a function that finds the shapes of tensors, for programs that give them no labels.

    A table that is read as a tensor has an axis for every column except that of values; its bounds are not known yet.
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


def _relations(name: str, tensor_names: Collection[str], engine: Engine) -> Sequence[DatabaseRelation]:
    """Return the tables and views of a name; none if a tensor in `tensor_names`, the catalogue, has that name."""
    is_tensor = name in tensor_names or any(other.lower() == name.lower() for other in tensor_names)
    relations = [] if is_tensor else engine.relations_named(name)
    for relation in relations[:1]:
        table = table_of_relation(relation, engine.dialect_name)
        check_relation_readable(engine, table.sql(engine.dialect_name), table)
    return relations


@dataclass(frozen=True, slots=True)
class _TableInput:
    """A table, view or file that is read as a tensor.

    Attributes:
        description: What the program says of the tensor, without bounds.
        relation: The relation, with its columns.
        keys: The columns of indices.
        value: The column of values; None if every row has the value 1.
        declared_bounds: The bounds that the program gives with the table; None for an axis without one.
    """

    description: TensorDescription
    relation: UserRelation
    keys: tuple[str, ...]
    value: str | None
    declared_bounds: tuple[int | None, ...]

    def as_tensor(self, bounds: Mapping[_AxisPosition, int], engine: Engine) -> RelationTensor:
        """Return the tensor with the bounds that its axes have in a program."""
        name = self.description.name
        shape = [
            bounds[name, position] if bound is None else bound for position, bound in enumerate(self.declared_bounds)
        ]
        description = replace(self.description, shape=shape)
        return relation_as_tensor(engine, description, self.relation, self.keys, self.value)


def _imported(statement: Import, engine: Engine) -> _TableInput:
    """Return the table that an import statement names."""
    axes = [axis for axis, _ in statement.axes]
    fill = 0 if statement.fill is None else statement.fill
    description = TensorDescription(statement.tensor, axes, None, fill, statement.dtype)
    table = relation_named(engine, statement.relation)
    relation = read_relation(engine, statement.tensor, statement.relation, table)
    keys = index_columns(engine, statement.tensor, relation, statement.index)
    declared_bounds = tuple(bound for _, bound in statement.axes)
    return _TableInput(description, relation, keys, statement.value, declared_bounds)


def _input_by_name(
    program: Program, name: str, rank: int | None, catalogued: Mapping[str, StoredTensor], engine: Engine
) -> _TableInput | StoredTensor:
    """Return the table that a tensor is read from, or the tensor itself if everything is known of it.

    Args:
        program: The program that reads it.
        name: The name of the tensor.
        rank: The number of labels that the program gives it; None if no statement reads it.
        catalogued: The tensors of the catalogue.
        engine: The engine of the tensor.
    """
    relations = _relations(name, catalogued, engine)
    result = tensor_from_comment(engine, name, relations[0]) if relations else None
    if result is not None:
        return result
    if rank is None or not relations:
        return find_tensor(catalogued, name)
    return _named(program, name, rank, relations, engine)


def _named(
    program: Program, name: str, rank: int, relations: Sequence[DatabaseRelation], engine: Engine
) -> _TableInput:
    """Return the first of `relations` as a table of indices and values; the program gives it `rank` labels."""
    table = table_of_relation(relations[0], engine.dialect_name)
    relation = read_relation(engine, name, name, table)
    *index, value = relation.columns
    is_tensor = len(index) == rank and all(is_index_type(column.sql_type) for column in index)
    if not (is_tensor and dtype_of(value.sql_type)):
        raise CatalogueError(_how_to_declare(name, table.sql(engine.dialect_name), relation.columns, rank))
    declaration = next((declaration for declaration in program.declared if declaration.tensor.name == name), None)
    fill = declaration.tensor.fill if declaration is not None and declaration.has_fill else 0
    dtype = declaration.tensor.dtype if declaration is not None and declaration.has_dtype else None
    description = TensorDescription(name, None, None, fill, dtype)
    keys = tuple(column.name for column in index)
    return _TableInput(description, relation, keys, value.name, (None,) * len(keys))


def _how_to_declare(name: str, relation: str, columns: Sequence[Column], rank: int) -> str:
    """Return a message that suggests a declaration of a tensor of `rank` axes from the columns of a relation."""
    integer_columns = [column.name for column in columns if is_index_type(column.sql_type)][:rank]
    key_columns = [column.name for column in columns if key_type_of(column.sql_type)][:rank]
    chosen = key_columns if len(integer_columns) < rank == len(key_columns) else integer_columns
    others = [column.name for column in columns if column.name not in chosen and dtype_of(column.sql_type)]
    shown = ", ".join(f"{column.name} {column.sql_type}" for column in columns)
    index = ", ".join(map(repr, chosen)) if len(chosen) == rank else "..."
    value = f", {others[0]!r}" if others else ""
    keys = {column: column.lower() for column in chosen if column not in integer_columns}
    value += f", keys={keys!r}" if keys else ""
    return (
        f"there is no tensor {name} in this database, and the table {relation} is none as it stands: for {rank} labels "
        f"it needs {rank} columns of whole numbers, one of values after them, and nothing else, but it has {shown}; "
        f"say what is what with tensor_from_table({name!r}, {relation!r}, [{index}]{value})"
    )


def _ranks(program: Program) -> dict[str, int]:
    """Return how many labels the first statement that reads a tensor gives it, by the name of the tensor."""
    ranks: dict[str, int] = {}
    for einsum in program.einsums:
        for operand in einsum.operands:
            ranks.setdefault(operand.tensor, len(operand.labels))
    return ranks


def _bounds(
    program: Program, inputs: Mapping[str, StoredTensor], tables: Mapping[str, _TableInput], engine: Engine
) -> dict[_AxisPosition, int]:
    """Return the bound of every axis of every table that is read as a tensor.

    Args:
        program: The program that reads them.
        inputs: Its other inputs, whose bounds are known.
        tables: The tables, by the names of the tensors.
        engine: The engine of the tables.
    """
    axes = {(name, position) for name, table in tables.items() for position in range(len(table.keys))}
    group_of = _groups(program)
    tensors = [declaration.tensor for declaration in program.declared] + [stored.tensor for stored in inputs.values()]
    shapes: list[tuple[str, Sequence[int | None]]] = [(tensor.name, tensor.shape) for tensor in tensors]
    shapes += [(name, table.declared_bounds) for name, table in tables.items()]
    fixed = {
        group_of.get((name, position), (name, position)): bound
        for name, shape in shapes
        for position, bound in enumerate(shape)
        if bound is not None
    }
    least: dict[_AxisPosition, int] = {}
    for name, table in tables.items():
        groups = [group_of.get((name, position), (name, position)) for position in range(len(table.keys))]
        if all(group in fixed for group in groups):
            continue
        for group, bound in zip(groups, greatest_indices(engine, table.relation.table, table.keys), strict=True):
            least[group] = max(bound, least.get(group, 0))
    grouped = {axis: group_of.get(axis, axis) for axis in axes}
    return {axis: fixed.get(group, least.get(group, 0)) for axis, group in grouped.items()}


def _groups(program: Program) -> dict[_AxisPosition, _AxisPosition]:
    """Return for every axis with a label a representative of all axes that share labels with it (union-find)."""
    representative_of: dict[_AxisPosition, _AxisPosition] = {}

    def representative(axis: _AxisPosition) -> _AxisPosition:
        while representative_of.setdefault(axis, axis) != axis:
            axis = representative_of[axis]
        return axis

    for einsum in program.einsums:
        first: dict[str, _AxisPosition] = {}
        for reference in (*einsum.operands, einsum.output):
            for position, label in enumerate(reference.labels):
                axis = representative((reference.tensor, position))
                representative_of[axis] = representative(first.setdefault(label, axis))
    return {axis: representative(axis) for axis in list(representative_of)}
