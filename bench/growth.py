"""How planning, runs and memory grow with the entries, the statements and the factors of a program.

    python -m bench.growth --plot growth.svg

Every size runs in a process of its own, whose greatest memory is told, after another program was planned and run there.
The first plan is on tensors that were just loaded, or, of the kind "rows", on a table of the user's; the next one has
the statistics of the first; the last one follows an UPDATE of one row. Beside it: scipy, numpy and opt_einsum.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import opt_einsum
import pyarrow as pa
import scipy.sparse as sp
from rich.table import Table

import sparseeinsum as se
from bench.timing import CONSOLE

DEFAULT_SIZES = {
    "entries": (10**3, 10**4, 10**5, 10**6, 10**7),
    "rows": (10**3, 10**4, 10**5, 10**6, 10**7),
    "statements": (1, 10, 100, 1000, 5000),
    "factors": (2, 10, 100, 1000, 5000),
}


@dataclass(frozen=True)
class Growth:
    """The figures of one size.

    Attributes:
        kind: What grows.
        size: How much of it there is.
        loading: Seconds to load the tensors.
        planning: Seconds until there is a plan for new tensors.
        planning_again: Seconds with the statistics of the first time.
        planning_changed: Seconds after a row of the largest tensor was changed.
        run: Seconds of a run of the plan.
        peer: The library beside it.
        peer_seconds: Seconds of the same in that library.
        memory: The greatest memory of the process in bytes.
    """

    kind: str
    size: int
    loading: float
    planning: float
    planning_again: float
    planning_changed: float
    run: float
    peer: str
    peer_seconds: float
    memory: int


@dataclass(frozen=True)
class Work:
    """A program, the tensors that it reads, and the same in another library.

    Attributes:
        text: The program.
        tensors: The tensors by name, the largest one first.
        peer: The other library.
        compute: Computes the same there.
        table: The table of the user's that has the entries of the largest tensor; None if it is loaded.
    """

    text: str
    tensors: dict[str, object]
    peer: str
    compute: Callable[[], object]
    table: str | None = None

    def load(self, db: se.Database) -> None:
        """Load the tensors; the table of the user's is there before, and is made known."""
        for name, value in self.tensors.items():
            if self.table is not None and isinstance(value, sp.csr_array):
                db.tensor_from_table(name, self.table, ["i", "j"], "val", shape=value.shape)
            else:
                db.tensor(name, value)

    def change(self, db: se.Database) -> None:
        """Change a row of the largest tensor."""
        name = next(iter(self.tensors))
        is_array = not db.tensors()[name].decomposition.is_scalar
        value = "list_reverse(val)" if is_array else "2 * val"
        db.connection.execute(f"UPDATE {self.table or name} SET val = {value} WHERE rowid = 0")


def entries(size: int) -> Work:
    """A product of a sparse matrix of that many entries, ten a row, and a vector."""
    rng, bound = np.random.default_rng(0), max(size // 10, 1)
    rows, columns = rng.integers(0, bound, (2, size))
    matrix = sp.csr_array(sp.coo_array((rng.random(size), (rows, columns)), (bound, bound)))
    vector = rng.random(bound)
    return Work("Y[i] = sum(A[i, j] * X[j])", {"A": matrix, "X": vector}, "scipy", lambda: matrix @ vector)


def rows(size: int) -> Work:
    """The same, where the matrix is a table of the user's."""
    return replace(entries(size), table="edges")


def statements(size: int) -> Work:
    """A chain of products of a small matrix and the vector of the statement before."""
    matrix, vector = _small_matrix(), np.ones(3)
    text = "\n".join(f"X{number + 1}[i] = sum(A[i, j] * X{number}[j])" for number in range(size))

    def compute() -> object:
        result = vector
        for _ in range(size):
            result = matrix @ result
        return result

    return Work(text, {"A": matrix, "X0": vector}, "numpy", compute)


def factors(size: int) -> Work:
    """One product of that many small matrices."""
    matrix = _small_matrix()
    text = " * ".join(f"A[i{number}, i{number + 1}]" for number in range(size))
    operands: list[object] = []
    for number in range(size):
        operands += [matrix, (number, number + 1)]
    return Work(
        f"Y[i0, i{size}] = sum({text})",
        {"A": matrix},
        "opt_einsum",
        lambda: opt_einsum.contract(*operands, (0, size), optimize="greedy"),
    )


def _small_matrix() -> np.ndarray:
    return np.random.default_rng(0).random((3, 3)) / 1.5


WORKS = {"entries": entries, "rows": rows, "statements": statements, "factors": factors}


def measure(kind: str, size: int) -> Growth:
    """The figures of one size, in this process; the result is checked."""
    work = WORKS[kind](size)
    db = se.connect()
    db.tensor("Before", np.eye(2))
    db.run("After[i] = sum(Before[i, j])", progress=False)
    if work.table is not None:
        _make_table(work, db)
    loading = _seconds(lambda: work.load(db))
    planning = _seconds(lambda: db.plan(work.text))
    planning_again = _seconds(lambda: db.plan(work.text))
    plan = db.plan(work.text)
    results = [db.run(plan, progress=False)]
    run = _seconds(lambda: results.append(db.run(plan, progress=False)))
    work.change(db)
    planning_changed = _seconds(lambda: db.plan(work.text))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    work.compute()
    peer_seconds = _seconds(work.compute)
    (result,) = results[-1].values()
    np.testing.assert_allclose(result.to_numpy(), np.asarray(work.compute()), rtol=1e-6)
    return Growth(kind, size, loading, planning, planning_again, planning_changed, run, work.peer, peer_seconds, memory)


def _make_table(work: Work, db: se.Database) -> None:
    matrix = next(iter(work.tensors.values()))
    assert isinstance(matrix, sp.csr_array)
    entries = matrix.tocoo()
    frame = pa.table({"i": entries.row, "j": entries.col, "val": entries.data})
    db.connection.register("frame", frame)
    db.connection.execute(f"CREATE TABLE {work.table} AS SELECT * FROM frame")
    db.connection.unregister("frame")


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def show(figures: list[Growth]) -> None:
    """Print a table."""
    table = Table(title="growth", title_justify="left")
    seconds = ("load s", "first plan s", "next s", "changed s", "run s")
    for heading in ("", "size", *seconds, "peer", "peer s", "memory MB"):
        table.add_column(heading, justify="left" if heading in ("", "peer") else "right")
    for figure in figures:
        plans = (figure.planning, figure.planning_again, figure.planning_changed)
        shown = [f"{value:.4f}" for value in (figure.loading, *plans, figure.run)]
        peer = [figure.peer, f"{figure.peer_seconds:.5f}", f"{figure.memory / 1e6:.0f}"]
        table.add_row(figure.kind, f"{figure.size:,}", *shown, *peer)
    CONSOLE.print(table)


def plot(figures: list[Growth], path: Path) -> None:
    """Draw seconds over sizes, both logarithmic; needs matplotlib."""
    from matplotlib import pyplot  # noqa: PLC0415  # for this option alone

    drawing, axes = pyplot.subplots(1, len(WORKS), figsize=(15, 4.5))
    for kind, place in zip(WORKS, axes, strict=True):
        own = [figure for figure in figures if figure.kind == kind]
        for name in ("planning", "planning_again", "planning_changed", "run", "peer_seconds"):
            title = own[0].peer if name == "peer_seconds" and own else name.replace("_", " ")
            place.loglog([figure.size for figure in own], [getattr(figure, name) for figure in own], "o-", label=title)
        place.set_xlabel(kind)
        place.set_ylabel("seconds")
        place.legend()
    drawing.tight_layout()
    drawing.savefig(path)


def main() -> None:
    """Measure every size in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for kind, sizes in DEFAULT_SIZES.items():
        parser.add_argument(f"--{kind}", type=int, nargs="*", default=sizes, help=f"sizes; by default {sizes}")
    parser.add_argument("--output", type=Path, default=Path("bench/results/growth.json"), help="file for the figures")
    parser.add_argument("--plot", type=Path, help="file for a drawing; needs matplotlib")
    parser.add_argument("--one", nargs=2, metavar=("KIND", "SIZE"), help="measure one size in this process, as JSON")
    asked = parser.parse_args()
    if asked.one:
        sys.stdout.write(json.dumps(asdict(measure(asked.one[0], int(asked.one[1])))))
        return
    figures = []
    for kind in WORKS:
        for size in getattr(asked, kind):
            command = [sys.executable, "-m", "bench.growth", "--one", kind, str(size)]
            finished = subprocess.run(command, capture_output=True, text=True, check=False)
            if finished.returncode:
                CONSOLE.print(f"{kind} {size}: {finished.stderr.strip().splitlines()[-1]}")
                continue
            figures.append(Growth(**json.loads(finished.stdout)))
    show(figures)
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    asked.output.write_text(json.dumps([asdict(figure) for figure in figures], indent=2) + "\n")
    if asked.plot:
        plot(figures, asked.plot)


if __name__ == "__main__":
    main()
