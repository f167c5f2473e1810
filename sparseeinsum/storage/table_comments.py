"""Storage: the comment of a table with a result says which tensor the table holds.

So a later program can read the table by its name, with the bounds and the fill of the tensor. If somebody replaces the
table, the new one lacks the comment.
"""

import json
from dataclasses import replace

from sqlglot import exp

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.engines.engine import DatabaseRelation, Engine
from sparseeinsum.errors import CatalogueError, DataError
from sparseeinsum.language.tensors import Axis, Decomposition, StoredTensor, Tensor
from sparseeinsum.storage.fills import fill_of, fill_text
from sparseeinsum.storage.table_names import table_of_relation
from sparseeinsum.storage.tensor_tables import stored_tensor

_KEY = "sparseeinsum"


def describe_table(engine: Engine, table: exp.Table, schema: Schema) -> None:
    """Write into the comment of a table which tensor it holds; `schema` is the schema of its rows, with indices."""
    tensor = schema.tensor
    description = {
        "axes": {axis.name: axis.bound for axis in tensor.axes},
        "dtype": tensor.dtype,
        "fill": fill_text(tensor.fill),
        "tiles": schema.decomposition.tiles,
    }
    text = exp.Literal.string(json.dumps({_KEY: description}))
    engine.execute(exp.Comment(this=table.copy(), kind="TABLE", expression=text))


def extend_description(engine: Engine, table: exp.Table, schema: Schema) -> None:
    """Update the comment of a table to which a result was added; do nothing if it says nothing of a tensor.

    Args:
        engine: The engine of the table.
        table: The table.
        schema: The schema of the result.

    Raises:
        DataError: The result has another fill, dtype or layout than the tensor in the table.
    """
    relations = [relation for relation in engine.relations_named(table.name) if table.db in ("", relation.schema)]
    description = tensor_from_comment(engine, schema.tensor.name, relations[0]) if relations else None
    if description is None:
        return
    tensor = schema.tensor
    axes = tuple(
        replace(axis, bound=max(axis.bound, other.bound))
        for axis, other in zip(tensor.axes, description.tensor.axes, strict=True)
    )
    extended = replace(schema, tensor=replace(tensor, axes=axes))
    if replace(description.tensor, axes=axes) != extended.tensor or description.decomposition != schema.decomposition:
        raise DataError(
            f"{tensor.name} cannot be added to {table.sql(engine.dialect_name)}: that holds a tensor of dtype "
            f"{description.tensor.dtype} with the fill {description.tensor.fill}, and {tensor.name} has dtype "
            f"{tensor.dtype} and the fill {tensor.fill}, or other tiles; choose another table"
        )
    describe_table(engine, table, extended)


def tensor_from_comment(engine: Engine, name: str, relation: DatabaseRelation) -> StoredTensor | None:
    """Return the tensor that a table holds according to its comment, named `name`; None if the comment says nothing.

    Raises:
        CatalogueError: The comment is damaged.
    """
    try:
        comment = json.loads(relation.comment or "null")
    except ValueError:  # somebody else wrote the comment
        return None
    if not (isinstance(comment, dict) and _KEY in comment):
        return None
    try:
        description = comment[_KEY]
        axes = tuple(Axis(str(axis), int(bound)) for axis, bound in description["axes"].items())
        dtype = str(description["dtype"])
        tensor = Tensor(name, axes, dtype, fill_of(name, str(description["fill"]), dtype))
        decomposition = Decomposition(tuple(int(tile) for tile in description["tiles"]))
        text = table_of_relation(relation, engine.dialect_name).sql(engine.dialect_name)
        return replace(stored_tensor(tensor, decomposition, text), is_owned=False)
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise CatalogueError(
            f"the comment of the table {relation.name} does not say which tensor it holds ({error}); compute it again, "
            "or make a tensor of it with tensor_from_table"
        ) from None
