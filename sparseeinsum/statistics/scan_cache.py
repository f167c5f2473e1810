"""Statistics: keeps what scans of stored tensors returned, until their rows change."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sparseeinsum.language.tensors import StoredTensor

_MOST_RESULTS = 512

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class RowVersion:
    """A stored tensor with the rows that it has at some time.

    Attributes:
        stored: The tensor.
        version: A value that changes with the rows; None if it is unknown.
    """

    stored: StoredTensor
    version: object


@dataclass(frozen=True, slots=True)
class TableState:
    """A table as it is after some changes; also other processes know it by this.

    Attributes:
        definition: Its columns, and what else identifies it in its database and its copies.
        log: The log that records its changes.
        changes: The number of changes since the table was made, which is one of them.
        number: The sum of the random numbers of these changes.
    """

    definition: str
    log: str
    changes: int
    number: int


@dataclass(frozen=True, slots=True)
class ChangeToken:
    """A value that differs after every change of a table.

    Attributes:
        table: What identifies the table, and what records its changes, in this process alone.
        state: The table as it is.
    """

    table: tuple[object, ...]
    state: TableState


def stored_in(tensors: Mapping[str, RowVersion]) -> dict[str, StoredTensor]:
    """The stored tensors of versions, by name."""
    return {name: tensor.stored for name, tensor in tensors.items()}


@dataclass(slots=True)
class ScanCache:
    """Results of scans, by the kind of scan and the relation that was scanned; those used last are kept.

    Attributes:
        defers_proofs: Whether measurements need not be proven now, since a run will prove them.
    """

    defers_proofs: bool = False
    _results: dict[tuple[str, str], tuple[RowVersion, Any]] = field(default_factory=dict)
    _of_state: dict[str, tuple[object, Any]] = field(default_factory=dict)

    def scan(
        self,
        kind: str,
        tensors: Mapping[str, RowVersion],
        scan: Callable[[Mapping[str, RowVersion]], Mapping[str, Result]],
    ) -> dict[str, Result]:
        """The results for tensors, of which only those are scanned whose rows have changed since they last were.

        Args:
            kind: Names what `scan` finds.
            tensors: The tensors, by name.
            scan: Scans tensors, and returns their results by name.
        """
        results = {name: self._find(kind, tensor) for name, tensor in tensors.items()}
        missing = {name: tensors[name] for name, result in results.items() if result is None}
        scanned = scan(missing) if missing else {}
        for name, tensor in missing.items():
            results[name] = scanned[name]
            self.keep(kind, tensor, scanned[name])
        return {name: result for name, result in results.items() if result is not None}

    def keep(self, kind: str, tensor: RowVersion, result: object) -> None:
        """Keep the result of a scan of that kind, unless the version of the rows is unknown."""
        if tensor.version is None:
            return
        self._results.pop((kind, tensor.stored.relation), None)
        self._results[kind, tensor.stored.relation] = tensor, result
        while len(self._results) > _MOST_RESULTS:
            del self._results[next(iter(self._results))]

    @contextmanager
    def deferring_proofs(self) -> Iterator[None]:
        """Within, what measurements rely on is not proven if that takes long."""
        before, self.defers_proofs = self.defers_proofs, True
        try:
            yield
        finally:
            self.defers_proofs = before

    def last(self, kind: str, stored: StoredTensor) -> Any:  # noqa: ANN401  # whatever the scan returned
        """The result of the last scan of a tensor, whose rows may have changed since; None if there is none."""
        then, result = self._results.get((kind, stored.relation), (None, None))
        return result if then is not None and then.stored == stored else None

    def of_state(self, kind: str, state: object, read: Callable[[], Result]) -> Result:
        """What `read` returns, or returned for the same state of the database.

        Args:
            kind: Names what `read` finds.
            state: A value that is the same only while permanent tables are; None if it is unknown.
            read: Reads permanent tables.
        """
        if state is None:
            return read()
        before, kept = self._of_state.get(kind, (None, None))
        if before == state:
            result: Result = kept
            return result
        result = read()
        self._of_state[kind] = state, result
        return result

    def _find(self, kind: str, tensor: RowVersion) -> Any:  # noqa: ANN401  # whatever the scan returns
        key = kind, tensor.stored.relation
        then, result = self._results.get(key, (None, None))
        if then != tensor:
            return None
        del self._results[key]
        self._results[key] = tensor, result
        return result
