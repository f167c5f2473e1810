"""Engines: relations of PostgreSQL that must be the same for all statements of a run."""

from collections.abc import Mapping, Sequence
from enum import Enum, auto

from sparseeinsum import assets
from sparseeinsum.engines.engine import RelationAccess
from sparseeinsum.engines.postgresql.names import quoted
from sparseeinsum.engines.postgresql.sessions import Session
from sparseeinsum.errors import EngineError

_LOCKABLE = ("r", "p", "v")
_UNLOCKED = ("42501", "42809")  # SQLSTATEs: no right, no table or view
_WAY = (
    "begin the transaction with ISOLATION LEVEL REPEATABLE READ, as all do after "
    "SET default_transaction_isolation = 'repeatable read'"
)


class ReadConsistency(Enum):
    """How relations stay as they are while a transaction reads them several times."""

    NOT = auto()
    BY_SNAPSHOT = auto()  # the transaction is REPEATABLE READ or above
    BY_LOCKS = auto()  # every statement has a snapshot of its own, so that nobody may write between them


class ConflictError(EngineError):
    """Somebody has put other rows into a table in a way that a snapshot does not show."""


def hold(session: Session, readings: Sequence[RelationAccess], kinds: Mapping[str, str], how: ReadConsistency) -> None:
    """Let relations be the same for all statements of the transaction that is open.

    Args:
        session: In a transaction.
        readings: The relations.
        kinds: Of those that are there, in pg_class's words, by their names as SQL has them.
        how: By what.

    Raises:
        ConflictError: One was emptied, rewritten or made anew since the snapshot was taken, which shows it empty.
        EngineError: One may not be locked where it must be.
    """
    if how is ReadConsistency.NOT or not kinds:
        return
    if how is ReadConsistency.BY_LOCKS:
        for name, reading in {quoted(*each.parts): each for each in readings}.items():
            if name in kinds:
                _lock(session, name, reading)
        return
    lockable = [name for name, kind in kinds.items() if kind in _LOCKABLE]
    if lockable:
        session.write(f"LOCK TABLE {', '.join(lockable)} IN ACCESS SHARE MODE")
    for (changed,) in session.fetch(assets.read("sql/postgresql/changed_relations.sql")):
        raise ConflictError(f"{changed} was emptied or made anew by others while it was about to be read; try again")


def _lock(session: Session, name: str, reading: RelationAccess) -> None:
    """Keep others from writing to a relation, and to the tables that a view reads, until the transaction ends."""
    try:
        session.write(f"LOCK TABLE {name} IN SHARE MODE")
    except EngineError as error:
        if getattr(error.__cause__, "sqlstate", None) not in _UNLOCKED:
            raise
        reason = str(error.__cause__).splitlines()[0]
        raise EngineError(
            f"others may write to {reading.title} while it is read, and it cannot be locked ({reason}); {_WAY}"
        ) from None  # whose SQLSTATE and hint would be taken for this one's
