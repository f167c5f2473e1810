"""Storage: finds out whether the rows of stored tensors have changed, from the database or from the rows."""

from collections.abc import Mapping

from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.columns import written_table
from sparseeinsum.statistics.fingerprints import fingerprints
from sparseeinsum.statistics.scan_cache import RowVersion, stored_in, versions_in_state


def row_versions(stored: Mapping[str, StoredTensor], engine: Engine) -> dict[str, RowVersion]:
    """The tensors with a value for each that changes when its rows change.

    It is the change token of a table whose changes the database records. Otherwise it is a fingerprint, for which all
    rows are read.

    Raises:
        EngineError: A relation cannot be read.
    """
    owned = {name: source for name, source in stored.items() if source.is_owned}
    state = engine.state_token() if owned else None
    tokens = engine.scans.scan(
        "change token",
        versions_in_state(owned, state),
        lambda changed: _change_tokens(stored_in(changed), engine),
    )
    read = {name: source for name, source in stored.items() if tokens.get(name) is None}
    versions = {**tokens, **_fingerprints(read, state, engine)}
    return {name: RowVersion(source, versions.get(name)) for name, source in stored.items()}


def _change_tokens(stored: Mapping[str, StoredTensor], engine: Engine) -> dict[str, object]:
    """The change tokens of our tables; None for those whose changes are not recorded."""
    tables = [written_table(source, engine.dialect_name) for source in stored.values()]
    return dict(zip(stored, engine.change_tokens(tables), strict=True))


def _fingerprints(stored: Mapping[str, StoredTensor], state: object, engine: Engine) -> dict[str, object]:
    """The fingerprints of tensors; the rows of our tables are read again only if the state of the database differs."""
    return engine.scans.scan(
        "fingerprint",
        versions_in_state(stored, state),
        lambda changed: dict(zip(changed, fingerprints(list(stored_in(changed).values()), engine), strict=True)),
    )
