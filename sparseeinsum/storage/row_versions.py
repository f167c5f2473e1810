"""Storage: finds out whether the rows of stored tensors have changed, from the database or from the rows."""

from collections.abc import Mapping

from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.columns import place_of, table_by_name
from sparseeinsum.statistics.fingerprints import fingerprints
from sparseeinsum.statistics.measure import Measurement
from sparseeinsum.statistics.scan_cache import RowVersion, stored_in


def row_versions(stored: Mapping[str, StoredTensor], engine: Engine) -> dict[str, RowVersion]:
    """The tensors with a value for each that changes when its rows change.

    It is the change token of a table whose changes the database records. Otherwise it is a fingerprint, for which all
    rows are read; or the state of the database, for tables that are measured again in no more time than that takes.

    Raises:
        EngineError: A relation cannot be read.
    """
    in_state = in_present_state(stored, engine)
    return versions_in_state(in_state, change_tokens(in_state, engine), engine)


def versions_in_state(
    in_state: Mapping[str, RowVersion], tokens: Mapping[str, object], engine: Engine
) -> dict[str, RowVersion]:
    """What `row_versions` returns, for tensors in a state of the database, with the change tokens of that state."""
    others = {name: tensor for name, tensor in in_state.items() if name not in tokens}
    quick = {name: _version_in_state(tensor) for name, tensor in others.items() if _is_quick(tensor.stored, engine)}
    read = {name: tensor for name, tensor in others.items() if name not in quick}
    versions = {**tokens, **quick, **_fingerprints(read, engine)}
    return {name: RowVersion(tensor.stored, versions.get(name)) for name, tensor in in_state.items()}


def _is_quick(stored: StoredTensor, engine: Engine) -> bool:
    """Whether the last measurement of a table of the user's took no longer than a fingerprint."""
    measurement = None if stored.is_owned else engine.scans.last("measurement", stored)
    return isinstance(measurement, Measurement) and measurement.is_quick


def _version_in_state(tensor: RowVersion) -> object:
    """The state of the database; a version of its own if that is unknown, since then anybody may change the rows."""
    return object() if tensor.version is None else tensor.version


def in_present_state(stored: Mapping[str, StoredTensor], engine: Engine) -> dict[str, RowVersion]:
    """Tensors with the state of the database as the version of their rows; it is unknown for rows that are elsewhere.

    Raises:
        EngineError: The tables of the database cannot be read.
    """
    are_here = {name: source.is_owned for name, source in stored.items()}
    state = engine.state_token() if stored else None
    if state is not None and not all(are_here.values()):
        tables = engine.scans.of_state("own tables", state, engine.own_tables)
        are_here = {name: are_here[name] or _place(source, engine) in tables for name, source in stored.items()}
    return {name: RowVersion(source, state if are_here[name] else None) for name, source in stored.items()}


def _place(stored: StoredTensor, engine: Engine) -> tuple[str, str] | None:
    """The schema and the name of the table of a tensor of the user's; None if it is in another place."""
    if stored.is_generated or stored.column_dictionaries:
        return None
    table = table_by_name(stored, engine.dialect_name)
    return (table.db, table.name) if isinstance(table.this, exp.Identifier) and not table.catalog else None


def change_tokens(in_state: Mapping[str, RowVersion], engine: Engine) -> dict[str, object]:
    """The change tokens of the tensors whose changes the database records; read only if its state is another one.

    Raises:
        EngineError: The tables of the database cannot be read.
    """
    tokens = engine.scans.scan(
        "change token",
        {name: tensor for name, tensor in in_state.items() if tensor.stored.is_owned},
        lambda changed: _change_tokens(stored_in(changed), engine),
    )
    return {name: token for name, token in tokens.items() if token is not None}


def _change_tokens(stored: Mapping[str, StoredTensor], engine: Engine) -> dict[str, object]:
    """The change tokens of our tables; None for those whose changes are not recorded."""
    tables = [place_of(source, engine.dialect_name) for source in stored.values()]
    return dict(zip(stored, engine.change_tokens(tables), strict=True))


def _fingerprints(tensors: Mapping[str, RowVersion], engine: Engine) -> dict[str, object]:
    """The fingerprints of tensors; the rows of tables are read again only if the state of the database differs."""
    return engine.scans.scan(
        "fingerprint",
        tensors,
        lambda changed: dict(zip(changed, fingerprints(list(stored_in(changed).values()), engine), strict=True)),
    )
