"""Loops: the tensors that keep the state of a loop."""

from dataclasses import replace

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import CatalogueError
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.storage.catalogue import Catalogue
from sparseeinsum.storage.ownership import claim_table, owned_tensor
from sparseeinsum.storage.tensor_tables import rows_as_stored, stored_tensor


def kept_tensor(engine: Engine, source: StoredTensor, name: str) -> StoredTensor:
    """The tensor that keeps a state: `source` itself, or a copy of it under another name.

    Args:
        engine: The database.
        source: The state before the loop.
        name: The name of the tensor.

    Raises:
        CatalogueError: The rows of the tensor are in a table of the user, or there is a table of that name.
    """
    if name == source.tensor.name:
        _check_own(engine, source)
        return source
    catalogue = Catalogue(engine)
    table = claim_table(engine, catalogue, name)
    engine.replace_table(table, rows_as_stored(engine, source), records_changes=True)
    kept = stored_tensor(replace(source.tensor, name=name), source.decomposition, table.sql(engine.dialect_name))
    catalogue.add(kept)
    return kept


def _check_own(engine: Engine, stored: StoredTensor) -> None:
    """Refuse to write into a table that was not made for the tensor, or whose keys are looked up."""
    name = stored.tensor.name
    if stored.lists is not None:
        raise CatalogueError(
            f"the state {name} is stored in lists, {stored.notation}, of which a step would write single entries; keep "
            f'it in another tensor, as in into={{"{name}": "{name}_2"}}'
        )
    if owned_tensor(engine, {name: stored}, name) is None or stored.holds_keys:
        raise CatalogueError(
            f"the state {name} is read from {stored.relation}, which is no table that this package loaded; keep it in "
            f'another tensor, as in into={{"{name}": "{name}_2"}}'
        )
