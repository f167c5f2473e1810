"""Engines: what the process of a PostgreSQL session keeps in memory from run to run."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from sparseeinsum.engines.postgresql.sessions import DatabaseSession
from sparseeinsum.engines.quoting import quoted
from sparseeinsum.errors import EngineError


@dataclass(frozen=True, slots=True)
class SessionArrays:
    """The arrays that the functions of the extension keep for a session, by handle.

    A pool of connections may give a session another process, which lacks them.

    Attributes:
        session: The session.
        schema: The schema of the functions.
    """

    session: DatabaseSession
    schema: str

    def can_keep(self) -> bool:
        """Return True: whether there is room shows when an array is kept."""
        return True

    def kept_bytes(self, handles: Sequence[int]) -> list[int]:
        """Return the bytes of every array."""
        if not handles:
            return []
        sizes = ", ".join(f"{quoted(self.schema, 'tensor_kept_bytes')}({handle})" for handle in handles)
        (row,) = self.session.fetch(f"SELECT {sizes}")
        return [int(str(size)) for size in row]

    def release(self, handle: int) -> bool:
        """Release an array; return whether there was one. A session that has failed or ended releases nothing."""
        with suppress(EngineError):
            ((is_released,),) = self.session.fetch(f"SELECT {quoted(self.schema, 'tensor_release')}({handle})")
            return bool(is_released)
        return False

    def lost(self, handles: Sequence[int]) -> frozenset[int]:
        """Return the handles of which the process has no array."""
        numbers = ", ".join(map(str, handles))
        size = f"{quoted(self.schema, 'tensor_kept_bytes')}(handle)"
        rows = self.session.fetch(
            f"SELECT handle FROM pg_catalog.unnest(CAST(ARRAY[{numbers}] AS BIGINT[])) AS handle WHERE {size} IS NULL"
        )
        return frozenset(int(str(handle)) for (handle,) in rows)
