"""Engines: what statements of several runs read in memory: arrays, and entries ordered by row, of tables as they are.

A run that needs the same as a run before it, of tables that have not changed since, keeps it for later runs; what is
small is kept by the first run that needs it. What was not needed for the longest time is released first, so that all
together stays within a limit.
"""

import math
import weakref
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

Key = TypeVar("Key", bound=Hashable)
# Makes several things; returns their handles: None of what has no rows, NO_ROOM of what cannot stay.
KeepFunction = Callable[[Sequence[Key]], Sequence[int | None]]

NO_ROOM = 0
MOST_KEPT = 256  # arrays of a connection; the library has room for twice as many of all connections


class MemoryLibrary(Protocol):
    """What has the memory of a process."""

    def can_keep(self) -> bool:
        """Return whether there is room for another handle."""

    def kept_bytes(self, handles: Sequence[int]) -> list[int]:
        """Return the bytes of the memory of every handle."""

    def release(self, handle: int) -> bool:
        """Release the memory of a handle; return whether there was any."""

    def lost(self, handles: Sequence[int]) -> Set[int]:
        """Return the handles that have no memory any more, although nobody released it."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Memory that is kept.

    Attributes:
        version: The version of the rows of the table.
        handle: The handle under which functions of the database read it; None if there are no rows.
        size_bytes: How large it is.
    """

    version: Hashable
    handle: int | None
    size_bytes: int


@dataclass(slots=True)
class _State:
    """Of one connection.

    Attributes:
        kept: What is kept, what was needed last at the end.
        needed: Versions that were needed once.
        too_large: Versions that did not fit, and within how many bytes.
    """

    kept: dict[Hashable, Kept] = field(default_factory=dict)
    needed: dict[Hashable, Hashable] = field(default_factory=dict)
    too_large: dict[Hashable, tuple[Hashable, float]] = field(default_factory=dict)


class KeptMemory:
    """The memory that a connection keeps between runs."""

    def __init__(
        self, library: Callable[[], MemoryLibrary], outlives_connection: bool = True, keeps_together: bool = True
    ) -> None:
        """Keep nothing at first.

        Args:
            library: Opens what has the memory, when there is something to keep.
            outlives_connection: Whether memory stays after the connection is closed, and so must be released.
            keeps_together: Whether several things may be made at once, of which nothing stays if one cannot be made.
        """
        self._library = library
        self._keeps_together = keeps_together
        self._state = _State()
        if outlives_connection:
            weakref.finalize(self, _release_all, self._state, library)

    def was_needed(self, key: Hashable) -> bool:
        """Whether a run needed this before, of whatever version."""
        return key in self._state.needed

    def handles(
        self,
        needed: Mapping[Key, Hashable],
        limit_bytes: float,
        keep: KeepFunction[Key],
        at_once: Container[Key] = (),
    ) -> dict[Key, int | None]:
        """The handles of what a run needs, as far as it is kept; the run makes the rest itself.

        Args:
            needed: What the run needs, with the versions of rows that it sees.
            limit_bytes: How much may be kept.
            keep: Makes what is needed.
            at_once: What to keep even if no run before this one needed this version of it.
        """
        state = self._state
        self._forget_lost(needed)
        self._forget_changed(needed)
        missing = [key for key in needed if key not in state.kept and self._may_fit(key, needed[key], limit_bytes)]
        self._keep({key: needed[key] for key in missing if key in at_once or self._is_needed_again(key, needed)}, keep)
        for key in needed:
            if key in state.kept:
                state.kept[key] = state.kept.pop(key)  # at the end
        if len(state.needed) >= MOST_KEPT:
            state.needed.clear()
            state.too_large.clear()
        state.needed.update(needed.items())
        before_release = [key for key in needed if key in state.kept]
        self._release_beyond(limit_bytes)
        # What does not fit beside the rest would be made in every run, only to be released before it is read.
        state.too_large.update({key: (needed[key], limit_bytes) for key in before_release if key not in state.kept})
        return {key: state.kept[key].handle for key in needed if key in state.kept}

    def _may_fit(self, key: Hashable, version: Hashable, limit_bytes: float) -> bool:
        """Whether nothing is known to have no room within so many bytes."""
        tried, bytes_then = self._state.too_large.get(key, (None, 0))
        return tried != version or limit_bytes > bytes_then

    def _is_needed_again(self, key: Key, needed: Mapping[Key, Hashable]) -> bool:
        return key in self._state.needed and self._state.needed[key] == needed[key]

    def _keep(self, versions: Mapping[Key, Hashable], keep: KeepFunction[Key]) -> None:
        """Keep these versions, as far as there is room."""
        for handles in self._handles_by_query(list(versions), keep):
            arrays = {key: handle for key, handle in handles.items() if handle is not None and handle != NO_ROOM}
            sizes = dict(zip(arrays, self._library().kept_bytes(list(arrays.values())), strict=True))
            for key, handle in handles.items():
                if handle == NO_ROOM:
                    self._state.too_large[key] = versions[key], math.inf
                else:
                    self._state.kept[key] = Kept(versions[key], handle, sizes.get(key, 0))

    def _handles_by_query(self, keys: Sequence[Key], keep: KeepFunction[Key]) -> Iterator[dict[Key, int | None]]:
        """Make what has these keys as far as there is room; yield the handles of what is made together."""
        for group in [keys] if self._keeps_together else [[key] for key in keys]:
            if group and self._library().can_keep():
                yield dict(zip(group, keep(group), strict=True))

    @contextmanager
    def during_statement(self, needed: Sequence[Key], keep: KeepFunction[Key]) -> Iterator[dict[Key, int | None]]:
        """The handles of what one statement reads several times, which is released after the statement.

        Args:
            needed: What the statement needs; it makes itself what there is no room for.
            keep: As for `handles`.
        """
        handles: dict[Key, int | None] = {}
        try:
            for handles_of_query in self._handles_by_query(needed, keep):
                handles.update(handles_of_query)
            yield {key: handle for key, handle in handles.items() if handle != NO_ROOM}
        finally:
            for handle in handles.values():
                if handle:
                    self._library().release(handle)

    def _forget_lost(self, needed: Iterable[Key]) -> None:
        """Forget what has no memory any more."""
        handles = {key: state.handle for key in needed if (state := self._state.kept.get(key)) is not None}
        present = {key: handle for key, handle in handles.items() if handle is not None}
        lost = self._library().lost(list(present.values())) if present else frozenset[int]()
        for key, handle in present.items():
            if handle in lost:
                del self._state.kept[key]

    def _forget_changed(self, needed: Mapping[Key, Hashable]) -> None:
        """Release other versions of what is needed."""
        kept = self._state.kept
        changed = [key for key, version in needed.items() if key in kept and kept[key].version != version]
        self._release_all_of([kept.pop(key) for key in changed])

    def release_all(self) -> None:
        """Release all memory that this connection keeps."""
        _release_all(self._state, self._library)

    def has_all(self, handles: Iterable[int | None]) -> bool:
        """Whether what has these handles is still kept; None stands for what has no rows."""
        kept = {kept.handle for kept in self._state.kept.values()}
        return kept.issuperset(handle for handle in handles if handle is not None)

    @property
    def count(self) -> int:
        """How many arrays are kept."""
        return len(self._state.kept)

    @property
    def size_bytes(self) -> int:
        """The bytes of everything that is kept."""
        return sum(kept.size_bytes for kept in self._state.kept.values())

    def _release_beyond(self, limit_bytes: float) -> None:
        """Release what is too large alone, then what was not needed longest, until the rest is within the limit."""
        kept, size = self._state.kept, self.size_bytes
        too_large = [key for key, alone in kept.items() if alone.size_bytes > limit_bytes]
        while kept and (size > limit_bytes or len(kept) > MOST_KEPT):
            released = kept.pop(too_large.pop() if too_large else next(iter(kept)))
            size -= released.size_bytes
            self._release_all_of([released])

    def _release_all_of(self, released: Iterable[Kept]) -> None:
        for kept in released:
            if kept.handle is not None:
                self._library().release(kept.handle)


def _release_all(state: _State, library: Callable[[], MemoryLibrary]) -> None:
    for kept in state.kept.values():
        if kept.handle is not None:
            library().release(kept.handle)
    state.kept.clear()
    state.needed.clear()
    state.too_large.clear()
