"""What a connection keeps between runs: when it is made, released and made again, whatever makes it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from sparseeinsum.engines.kept_memory import NO_ROOM, KeptMemory


@dataclass
class Library:
    """A library whose arrays have ten bytes, unless their handle has another number of them."""

    has_room: bool
    other_bytes: dict[int, int] = field(default_factory=dict)
    released: list[int] = field(default_factory=list)
    lost_handles: set[int] = field(default_factory=set)

    def can_keep(self) -> bool:
        return self.has_room

    def kept_bytes(self, handles: Sequence[int]) -> list[int]:
        return [self.other_bytes.get(handle, 10) for handle in handles]

    def lost(self, handles: Sequence[int]) -> frozenset[int]:
        return frozenset(handles).intersection(self.lost_handles)

    def release(self, handle: int) -> bool:
        self.released.append(handle)
        return True


def test_what_was_not_needed_for_the_longest_time_goes_first() -> None:
    library = Library(has_room=True)
    released, made = library.released, iter(range(1, 100))
    memory = KeptMemory(lambda: library)

    def handles(*keys: str, version: int = 0) -> dict[str, int | None]:
        return memory.handles(dict.fromkeys(keys, version), 25, lambda keys: [next(made) for _ in keys])

    assert handles("a", "b") == {}
    assert handles("a", "b") == {"a": 1, "b": 2}
    assert handles("c") == {}
    assert handles("a") == {"a": 1}
    assert handles("c") == {"c": 3}
    assert released == [2]
    assert handles("a", version=1) == {}
    assert released == [2, 1]
    assert handles("a", version=1) == {"a": 4}
    assert memory.size_bytes == 20
    memory.release_all()
    assert sorted(released) == [1, 2, 3, 4]
    assert handles("a", version=1) == {}


def test_what_is_too_large_alone_displaces_nothing() -> None:
    library, made = Library(has_room=True, other_bytes={2: 26}), iter(range(1, 100))
    memory = KeptMemory(lambda: library)

    def handles() -> dict[str, int | None]:
        return memory.handles(dict.fromkeys("abc", 0), 25, lambda keys: [next(made) for _ in keys])

    assert handles() == {}
    assert handles() == {"a": 1, "c": 3}
    assert library.released == [2]
    assert handles() == {"a": 1, "c": 3}


def test_what_is_wanted_at_once_is_kept_at_once() -> None:
    library, made = Library(has_room=True), iter(range(1, 100))
    memory = KeptMemory(lambda: library)

    def handles(version: int, at_once: str) -> dict[str, int | None]:
        needed = dict.fromkeys("ab", version)
        return memory.handles(needed, 100, lambda keys: [next(made) for _ in keys], at_once)

    assert not memory.was_needed("a")
    assert handles(0, at_once="a") == {"a": 1}
    assert memory.was_needed("a")
    assert memory.was_needed("b")
    assert handles(1, at_once="") == {}
    assert library.released == [1]
    assert handles(1, at_once="") == {"a": 2, "b": 3}
    assert handles(2, at_once="ab") == {"a": 4, "b": 5}


def test_what_was_made_before_an_error_is_kept_and_released() -> None:
    library, made = Library(has_room=True), iter((1, 2))
    memory = KeptMemory(lambda: library, keeps_together=False)

    def keep(keys: Sequence[str]) -> list[int]:
        (key,) = keys
        if key == "c":
            raise ZeroDivisionError
        return [next(made)]

    with pytest.raises(ZeroDivisionError):
        memory.handles(dict.fromkeys("abc", 0), 100, keep, "abc")
    assert memory.count == 2
    memory.release_all()
    assert library.released == [1, 2]
    with pytest.raises(ZeroDivisionError), memory.during_statement("ca", keep):
        raise AssertionError("nothing was made")
    assert library.released == [1, 2]


def test_what_one_statement_needs_is_released_after_it() -> None:
    library, made = Library(has_room=True), iter((1, NO_ROOM, None))
    memory = KeptMemory(lambda: library)
    with memory.during_statement("abc", lambda keys: [next(made) for _ in keys]) as handles:
        assert handles == {"a": 1, "c": None}
        assert library.released == []
    assert library.released == [1]
    with pytest.raises(ZeroDivisionError), memory.during_statement("a", lambda keys: [2]):
        raise ZeroDivisionError
    assert library.released == [1, 2]
    assert memory.count == 0


def test_what_is_lost_is_made_again() -> None:
    library, made = Library(has_room=True), iter(range(1, 100))
    memory = KeptMemory(lambda: library)

    def handles() -> dict[str, int | None]:
        return memory.handles(dict.fromkeys("ab", 0), 100, lambda keys: [next(made) for _ in keys])

    assert [handles() for _ in range(3)] == [{}, {"a": 1, "b": 2}, {"a": 1, "b": 2}]
    library.lost_handles.add(1)
    assert handles() == {"a": 3, "b": 2}
    assert library.released == []


def test_what_finds_no_room_is_not_made_again() -> None:
    made: list[str] = []
    memory = KeptMemory(lambda: Library(has_room=True))

    def keep(keys: Sequence[str]) -> list[int]:
        made.extend(keys)
        return [NO_ROOM] * len(keys)

    for _ in range(4):
        assert memory.handles({"a": 0}, 100, keep) == {}
    assert made == ["a"]


def test_nothing_is_kept_without_room() -> None:
    memory = KeptMemory(lambda: Library(has_room=False))
    for _ in range(3):
        assert memory.handles({"a": 0}, 100, lambda keys: [1]) == {}


def test_what_does_not_fit_is_not_made_again_and_again() -> None:
    library = Library(has_room=True)
    made: list[tuple[str, int]] = []
    memory = KeptMemory(lambda: library)

    def handles(limit: int, version: int = 0) -> set[str]:
        def keep(keys: Sequence[str]) -> range:
            made.extend((key, version) for key in keys)
            return range(len(made) - len(keys) + 1, len(made) + 1)

        return set(memory.handles(dict.fromkeys("abc", version), limit, keep))

    assert [handles(25) for _ in range(4)] == [set(), {"b", "c"}, {"b", "c"}, {"b", "c"}]
    assert made == [("a", 0), ("b", 0), ("c", 0)]
    assert [handles(25, version=1) for _ in range(3)] == [set(), {"b", "c"}, {"b", "c"}]
    assert made[3:] == [("a", 1), ("b", 1), ("c", 1)]
    assert handles(35, version=1) == {"a", "b", "c"}
