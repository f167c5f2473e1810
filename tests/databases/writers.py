"""Writers beside runs: threads that change tables, and what runs must see of it."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import sparseeinsum as se

# Statistics of a vector X of SIZE equal values.
STATISTICS = "P[] = max(X[i])\nQ[] = min(X[i])\nS[] = sum(X[i])"
SIZE = 500

Execute = Callable[[str], object]


@contextmanager
def writing(execute: Execute, *transactions: str) -> Iterator[Callable[[], int]]:
    """Run transactions in turn in another thread; the yielded function returns their number."""
    ends, count, failed = threading.Event(), [0], []

    def write() -> None:
        try:
            while not ends.is_set():
                execute(transactions[count[0] % len(transactions)])
                count[0] += 1
        except Exception as error:  # the test's thread raises it
            failed.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield lambda: count[0]
    finally:
        ends.set()
        thread.join()
    if failed:
        raise failed[0]


def check_consistent(results: Mapping[str, se.TensorResult]) -> None:
    most, least, total = (results[name].to_numpy().item() for name in ("P", "Q", "S"))
    assert most == least
    assert total == most * SIZE
