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
    versions = {**tokens, **_fingerprints(read, engine)}
    return {name: RowVersion(source, versions.get(name)) for name, source in stored.items()}


def _fingerprints(stored: Mapping[str, StoredTensor], engine: Engine) -> dict[str, object]:
    """The fingerprints of tensors; the rows of our tables are read again only if the database has changed."""
    state = engine.state_token() if any(source.is_owned for source in stored.values()) else None
    tensors = {name: RowVersion(source, state if source.is_owned else None) for name, source in stored.items()}

    def read(changed: Mapping[str, RowVersion]) -> dict[str, object]:
        sources = [tensor.stored for tensor in changed.values()]
        return dict(zip(changed, fingerprints(sources, engine), strict=True))

    return engine.scans.scan("fingerprint", tensors, read)
