"""Engines: the tensors that a program reads: those of the catalogue, and tables that are tensors as they stand.

Where the catalogue has no tensor of a name, the table or view of that name is read as one, if its columns are as many
of whole numbers as the program gives it labels, and then one of values. Other columns are an error that says how to
declare the tensor; nothing is guessed. What has no row is 0, unless the program declares another fill. The bound of an
axis is the one that the program declares for it, or that of a tensor of the catalogue that shares a label with it; else
one more than the greatest index of all such tables that share a label with it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.engines.arguments import Description
from sparseeinsum.engines.catalogue import Catalogue, find, table_of_relation
from sparseeinsum.engines.engine import Column, Engine
from sparseeinsum.engines.existing_tables import described, greatest_indices
from sparseeinsum.engines.natural_keys import key_type_of
from sparseeinsum.errors import CatalogueError
from sparseeinsum.language.eingraph import DeclaredTensor, Program
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.columns import dtype_of, is_index_type

_Place = tuple[str, int]  # a tensor, and the position of one of its axes


def stored_inputs(program: Program, engine: Engine) -> dict[str, StoredTensor]:
    """The tensors that a program reads, by name.

    Raises:
        CatalogueError: There is no such tensor, nor a table that is one as it stands.
        DataError: The values of such a table have a type that tensors cannot have.
    """
    known = Catalogue(engine).all()
    found, tables = {}, {}
    for name in program.inputs:
        table = None if name in known else _table(program, name, known, engine)
        if table is None:
            found[name] = find(known, name)
        else:
            tables[name] = table
    if not tables:
        return found
    bounds = _bounds(program, found, tables, engine)
    return found | {name: table.as_tensor(program, bounds, engine) for name, table in tables.items()}


@dataclass(frozen=True, slots=True)
class _Table:
    """A table or view that is read as the tensor of its name."""

    name: str
    table: exp.Table
    keys: tuple[str, ...]
    value: str

    def as_tensor(self, program: Program, bounds: Mapping[_Place, int], engine: Engine) -> StoredTensor:
        """The tensor, with the bounds that its axes have in a program."""
        shape = [bounds[self.name, position] for position in range(len(self.keys))]
        declared = _declared(program, self.name)
        fill = declared.tensor.fill if declared is not None and declared.has_fill else 0
        dtype = declared.tensor.dtype if declared is not None and declared.has_dtype else None
        description = Description(self.name, None, shape, fill, dtype)
        stored, _ = described(engine, description, self.name, self.table, self.keys, self.value)
        return stored


def _table(program: Program, name: str, known: Mapping[str, StoredTensor], engine: Engine) -> _Table | None:
    """The table of a name, if the program gives the name labels and no tensor's name differs in case alone."""
    ranks = [len(labels) for tensor, labels in _references(program) if tensor == name]
    if not ranks or any(other.lower() == name.lower() for other in known):
        return None
    relations = engine.relations_named(name)
    if not relations:
        return None
    table = table_of_relation(relations[0], engine.dialect)
    columns = engine.columns(exp.select("*").from_(table.copy()))
    *index, value = columns
    is_tensor = len(index) == ranks[0] and all(is_index_type(column.sql_type) for column in index)
    if not (is_tensor and dtype_of(value.sql_type)):
        raise CatalogueError(_how_to_declare(name, table.sql(engine.dialect), columns, ranks[0]))
    return _Table(name, table, tuple(column.name for column in index), value.name)


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


def _declared(program: Program, name: str) -> DeclaredTensor | None:
    return next((each for each in program.declared if each.tensor.name == name), None)


def _bounds(
    program: Program, found: Mapping[str, StoredTensor], tables: Mapping[str, _Table], engine: Engine
) -> dict[_Place, int]:
    """The bound of every axis of every table that is read as a tensor."""
    places = {(name, position) for name, table in tables.items() for position in range(len(table.keys))}
    group_of = _groups(program)
    known = [each.tensor for each in program.declared] + [stored.tensor for stored in found.values()]
    fixed = {
        group_of.get((tensor.name, position), (tensor.name, position)): axis.bound
        for tensor in known
        for position, axis in enumerate(tensor.axes)
    }
    least: dict[_Place, int] = {}
    for name, table in tables.items():
        if all(group_of[name, position] in fixed for position in range(len(table.keys))):
            continue
        for position, bound in enumerate(greatest_indices(engine, table.table, table.keys)):
            group = group_of[name, position]
            least[group] = max(bound, least.get(group, 0))
    return {place: fixed.get(group_of[place], least.get(group_of[place], 0)) for place in places}


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
