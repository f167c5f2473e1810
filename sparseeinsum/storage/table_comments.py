"""Storage: tables that results go into say themselves what tensor they hold, in their comments.

So a later program reads such a table by its name as the tensor that it is, with its bounds and its fill; a table of
the same name that somebody makes in its place has no such comment.
"""

import json
from dataclasses import replace

from sqlglot import exp

from sparseeinsum.algebra.operators import Schema
from sparseeinsum.engines.engine import Engine, Relation
from sparseeinsum.errors import CatalogueError, DataError
from sparseeinsum.language.tensors import Axis, Decomposition, StoredTensor, Tensor
from sparseeinsum.storage.fills import fill_of, fill_text
from sparseeinsum.storage.table_names import table_of_relation
from sparseeinsum.storage.tensor_tables import stored_tensor

_KEY = "sparseeinsum"


def describe_table(engine: Engine, table: exp.Table, schema: Schema) -> None:
    """Write into the comment of a table which tensor it holds; its key columns hold indices."""
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
    """Let a table to which the rows of a result were added, and that says what tensor it holds, say what it holds now.

    Raises:
        DataError: The result has another fill, dtype or layout than that tensor.
    """
    relations = [each for each in engine.relations_named(table.name) if table.db in ("", each.schema)]
    before = tensor_from_comment(engine, schema.tensor.name, relations[0]) if relations else None
    if before is None:
        return
    tensor = schema.tensor
    axes = tuple(
        replace(axis, bound=max(axis.bound, other.bound))
        for axis, other in zip(tensor.axes, before.tensor.axes, strict=True)
    )
    whole = replace(schema, tensor=replace(tensor, axes=axes))
    if replace(before.tensor, axes=axes) != whole.tensor or before.decomposition != schema.decomposition:
        raise DataError(
            f"{tensor.name} cannot be added to {table.sql(engine.dialect_name)}: that holds a tensor of dtype "
            f"{before.tensor.dtype} with the fill {before.tensor.fill}, and {tensor.name} has dtype {tensor.dtype} and "
            f"the fill {tensor.fill}, or other tiles; choose another table"
        )
    describe_table(engine, table, whole)


def tensor_from_comment(engine: Engine, name: str, relation: Relation) -> StoredTensor | None:
    """The tensor that a table says it holds, by the name of the table in a program; None where it says nothing.

    Raises:
        CatalogueError: It says something that cannot be read.
    """
    try:
        found = json.loads(relation.comment or "null")
    except ValueError:  # a comment of somebody else
        return None
    if not (isinstance(found, dict) and _KEY in found):
        return None
    try:
        description = found[_KEY]
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
