"""Results: tables of their own for results, so that later programs read these as tensors."""

from dataclasses import replace

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import NameTakenError
from sparseeinsum.results.execution import KeptResult
from sparseeinsum.results.targets import Table
from sparseeinsum.storage.catalogue import Catalogue, check_name
from sparseeinsum.storage.ownership import default_table, drop_table, owned_tensor
from sparseeinsum.storage.table_names import table_of_relation
from sparseeinsum.storage.tensor_tables import stored_tensor


def claim_table(engine: Engine, name: str, replaces: bool) -> Table:
    """The table for a result, which is not made yet; a tensor that it is to replace is forgotten.

    Args:
        engine: Where.
        name: Of the result.
        replaces: Whether it may take the place of a tensor of that name, and of the table that was made for that.

    Raises:
        NameTakenError: There is a tensor of that name that must not be replaced, or a table that is not ours.
    """
    catalogue = Catalogue(engine)
    known = catalogue.all()
    check_name(name, known, engine)
    table = default_table(engine, name)
    before = known.get(name)
    if before is not None and not replaces:
        raise NameTakenError(
            f"there is a tensor {name} already, in {before.relation}; pass replace => true, or give the result "
            "another name"
        )
    replaced = owned_tensor(engine, known, name)
    ours = None if replaced is None else replaced.relation
    for found in engine.relations_named(name):
        if table_of_relation(found, engine.dialect_name).sql(engine.dialect_name) != ours:
            raise NameTakenError(
                f"there is a table or view {found.schema}.{found.name} that was not made for a tensor {name}; give "
                "the result another name"
            )
    if before is not None:
        catalogue.remove(name)
    if ours not in (None, table.sql(engine.dialect_name)):  # in another schema
        drop_table(engine, replaced)
    return Table(table.sql(engine.dialect_name))


def record_result(engine: Engine, kept: KeptResult) -> None:
    """Make a tensor of a result that is in a table."""
    stored = stored_tensor(kept.schema.tensor, kept.schema.decomposition, kept.target.name)
    Catalogue(engine).add(replace(stored, holds_keys=kept.schema.has_dictionaries))
