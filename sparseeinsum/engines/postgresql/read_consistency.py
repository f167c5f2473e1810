"""Engines: keeps relations of PostgreSQL unchanged while the statements of a run read them."""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from string import Template

from sparseeinsum.engines.engine import RelationAccess
from sparseeinsum.engines.postgresql.sessions import DatabaseSession, sqlstate
from sparseeinsum.engines.quoting import quoted
from sparseeinsum.environment import assets
from sparseeinsum.errors import EngineError

_LOCKABLE_KINDS = ("r", "p", "v")  # of pg_class: tables, partitioned tables, views
_CANNOT_LOCK = ("42501", "42809")  # SQLSTATEs: insufficient privilege, neither a table nor a view
_SUGGESTION = (
    "begin the transaction with ISOLATION LEVEL REPEATABLE READ, as all do after "
    "SET default_transaction_isolation = 'repeatable read'"
)


class ReadConsistency(Enum):
    """How relations are kept unchanged while a transaction reads them several times."""

    NONE = auto()
    BY_SNAPSHOT = auto()  # the transaction is REPEATABLE READ or above
    BY_LOCKS = auto()  # every statement has a snapshot of its own, so that nobody may write between them


class ConflictError(EngineError):
    """Another transaction replaced the rows of a table in a way that a snapshot does not show."""


def ensure_consistent_reads(
    session: DatabaseSession, accesses: Sequence[RelationAccess], kinds: Mapping[str, str], consistency: ReadConsistency
) -> None:
    """Make all statements of the open transaction see the same rows of some relations.

    Args:
        session: The session of the transaction.
        accesses: The relations.
        kinds: The kinds of those that exist (`relkind` of pg_class), by their quoted names.
        consistency: How this is done.

    Raises:
        ConflictError: A table was truncated, rewritten or created after the snapshot, which shows it empty.
        EngineError: A relation cannot be locked although it must be.
    """
    if consistency is ReadConsistency.NONE or not accesses:
        return
    names = [quoted(*access.schema_and_name) for access in accesses]
    if consistency is ReadConsistency.BY_LOCKS:
        for name, access in {quoted(*access.schema_and_name): access for access in accesses}.items():
            if name in kinds:
                _lock(session, name, access)
        return
    lockable = [name for name, kind in kinds.items() if kind in _LOCKABLE_KINDS]
    if lockable:
        session.lock_for_reading(", ".join(lockable))
    parameters = ", ".join(f"${number}" for number in range(1, len(names) + 1))
    query = Template(assets.read("sql/postgresql/changed_relations.sql")).substitute(names=parameters)
    for (changed,) in session.fetch(query, *names):
        raise ConflictError(f"{changed} was emptied or replaced by others while it was about to be read; try again")


def _lock(session: DatabaseSession, name: str, access: RelationAccess) -> None:
    """Prevent writes to a relation, and to the tables that a view reads, until the transaction ends."""
    try:
        session.write(f"LOCK TABLE {name} IN SHARE MODE")
    except EngineError as error:
        if sqlstate(error) not in _CANNOT_LOCK:
            raise
        reason = str(error.__cause__).splitlines()[0]
        raise EngineError(
            f"others may write to {access.title} while it is read, and it cannot be locked ({reason}); {_SUGGESTION}"
        ) from None  # the cause's SQLSTATE and hint would be taken for those of this error
