"""Storage: finds out whether the rows of stored tensors have changed, from the database or from the rows."""

from collections.abc import Mapping

from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.columns import table_by_name
from sparseeinsum.statistics.fingerprints import fingerprints
from sparseeinsum.statistics.scan_cache import RowVersion


def row_versions(stored: Mapping[str, StoredTensor], engine: Engine) -> dict[str, RowVersion]:
    """The tensors with a value for each that changes when its rows change.

    It is the change token of a table whose changes the database records. Otherwise it is a fingerprint, for which all
    rows are read.

    Raises:
        EngineError: A relation cannot be read.
    """
    owned = {name: table_by_name(source, engine.dialect_name) for name, source in stored.items() if source.is_owned}
    tokens = dict(zip(owned, engine.change_tokens(list(owned.values())), strict=True))
    read = {name: source for name, source in stored.items() if tokens.get(name) is None}
    versions = {**tokens, **dict(zip(read, fingerprints(list(read.values()), engine), strict=True))}
    return {name: RowVersion(source, versions[name]) for name, source in stored.items()}
