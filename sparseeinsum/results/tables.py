"""Results: tables in which results become tensors that later programs read."""

from dataclasses import replace

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import NameTakenError
from sparseeinsum.results.execution import WrittenResult
from sparseeinsum.results.output_targets import Table
from sparseeinsum.storage.catalogue import Catalogue, check_name
from sparseeinsum.storage.ownership import default_table, drop_table, owned_tensor
from sparseeinsum.storage.table_names import table_of_relation
from sparseeinsum.storage.tensor_tables import stored_tensor


def claim_table(engine: Engine, name: str, replaces: bool) -> Table:
    """Choose the table for a result, and remove a tensor that the result replaces from the catalogue.

    Args:
        engine: The database.
        name: The name of the result.
        replaces: Whether the result may replace a tensor of that name, with the table that was made for it.

    Raises:
        NameTakenError: A tensor of that name must not be replaced, or a table of that name was not made for a tensor.
    """
    catalogue = Catalogue(engine)
    tensors = catalogue.all()
    check_name(name, tensors, engine)
    table = default_table(engine, name)
    before = tensors.get(name)
    if before is not None and not replaces:
        raise NameTakenError(
            f"there is a tensor {name} already, in {before.relation}; pass replace => true, or give the result "
            "another name"
        )
    replaced = owned_tensor(engine, tensors, name)
    ours = None if replaced is None else replaced.relation
    for relation in engine.relations_named(name):
        if table_of_relation(relation, engine.dialect_name).sql(engine.dialect_name) != ours:
            raise NameTakenError(
                f"there is a table or view {relation.schema}.{relation.name} that was not made for a tensor {name}; "
                "give the result another name"
            )
    if before is not None:
        catalogue.remove(name)
    if ours not in (None, table.sql(engine.dialect_name)):  # in another schema
        drop_table(engine, replaced)
    return Table(table.sql(engine.dialect_name))


def record_result(engine: Engine, result: WrittenResult) -> None:
    """Add a result, which a table holds, to the catalogue of tensors."""
    stored = stored_tensor(result.schema.tensor, result.schema.decomposition, result.target.name)
    Catalogue(engine).add(replace(stored, holds_keys=result.schema.has_dictionaries))
