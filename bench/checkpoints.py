"""Peak memory and seconds of a gradient through dense layers, with and without checkpoints, beside torch.

    python -m bench.checkpoints [--layers 16] [--rows 8000] [--width 500] [--every 4] [--limit 4e9]

Every run has a process of its own, which computes a small gradient first. Its peak is what the process takes at most,
less what it takes before the gradient is computed; memory that DuckDB counts is given beside it. The checkpoints are
every fourth layer; torch's are those of `torch.utils.checkpoint`. The limit is that of the plan, which decides what one
statement computes.
"""

import argparse
import importlib
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

import sparseeinsum as se
from bench.timing import CONSOLE

_PAGE_BYTES = 4096
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Chain:
    """Layers of a network: tanh of products of matrices."""

    layers: int
    rows: int
    width: int
    every: int
    limit: float

    def arrays(self) -> dict[str, Array]:
        """The first activations and all weights."""
        rng = np.random.default_rng(0)
        weights = {f"W{k}": rng.normal(size=(self.width, self.width)) for k in range(1, self.layers + 1)}
        return {"H0": rng.normal(size=(self.rows, self.width))} | {
            name: array / np.sqrt(self.width) for name, array in weights.items()
        }

    @property
    def text(self) -> str:
        """The forward pass."""
        layers = [f"H{k}[i, h] = tanh(sum(H{k - 1}[i, f] * W{k}[f, h]))" for k in range(1, self.layers + 1)]
        return "\n".join([*layers, f"loss[] = sum(H{self.layers}[i, h] ^ 2)"])


@dataclass(frozen=True)
class Peak:
    """What a run took."""

    process_bytes: int
    database_bytes: int
    seconds: float
    processor_seconds: float
    first: Array


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES


@contextmanager
def _watched(counted: Callable[[], int]) -> Iterator[list[int]]:
    """The largest sizes of the process and of what is counted, while the context runs."""
    peaks, stop = [0, 0], threading.Event()

    def watch() -> None:
        while not stop.wait(0.003):
            peaks[:] = max(peaks[0], _resident()), max(peaks[1], counted())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peaks
    finally:
        stop.set()
        thread.join()


def _measured(run: Callable[[], Array], counted: Callable[[], int]) -> Peak:
    before, wall, processor = _resident(), time.perf_counter(), time.process_time()
    with _watched(counted) as peaks:
        first = run()
    return Peak(peaks[0] - before, peaks[1], time.perf_counter() - wall, time.process_time() - processor, first)


def in_database(chain: Chain, with_checkpoints: bool) -> Peak:
    """The gradient by a plan."""
    names = [f"H{k}" for k in range(chain.every, chain.layers, chain.every)] if with_checkpoints else None
    weights = [f"W{k}" for k in range(1, chain.layers + 1)]
    with se.connect() as database:
        for name, array in chain.arrays().items():
            database.tensor(name, array)
        program = se.gradient(chain.text, of="loss", by=weights, checkpoint=names)
        plan = database.plan(program, memory_limit=int(chain.limit))
        cursor = database.connection.cursor()

        def counted() -> int:
            ((size,),) = cursor.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchall()
            return int(size)

        return _measured(lambda: database.run(plan, progress=False)["d_W1"].to_numpy(), counted)


def by_torch(chain: Chain, with_checkpoints: bool) -> Peak:
    """The gradient by torch."""
    torch: Any = importlib.import_module("torch")
    checkpoint = importlib.import_module("torch.utils.checkpoint").checkpoint
    tensors = {name: torch.from_numpy(array) for name, array in chain.arrays().items()}
    weights = [tensors[f"W{k}"].requires_grad_() for k in range(1, chain.layers + 1)]

    def segment(first: int) -> Callable[[Any], Any]:
        def forward(values: Any) -> Any:  # noqa: ANN401  # tensors of torch, which need not be there
            for weight in weights[first : first + chain.every]:
                values = torch.tanh(values @ weight)
            return values

        return forward

    def run() -> Array:
        values = tensors["H0"]
        for first in range(0, chain.layers, chain.every):
            forward = segment(first)
            values = checkpoint(forward, values, use_reentrant=False) if with_checkpoints else forward(values)
        (values**2).sum().backward()
        gradient: Array = weights[0].grad.numpy()
        return gradient

    return _measured(run, lambda: 0)


CONTENDERS: dict[str, Callable[[Chain, bool], Peak]] = {"plan": in_database, "torch": by_torch}


def _send(contender: str, chain: Chain, with_checkpoints: bool, receiver: Connection) -> None:
    CONTENDERS[contender](replace(chain, rows=16, width=16), with_checkpoints)  # loads what is loaded once
    receiver.send(CONTENDERS[contender](chain, with_checkpoints))


def _in_own_process(contender: str, chain: Chain, with_checkpoints: bool) -> Peak:
    context = multiprocessing.get_context("spawn")
    result, receiver = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(contender, chain, with_checkpoints, receiver))
    process.start()
    peak: Peak = result.recv()
    process.join()
    return peak


def main() -> None:
    """Measure all, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("layers", 16), ("rows", 8000), ("width", 500), ("every", 4)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--limit", type=float, default=4e9)
    chain = Chain(**vars(parser.parse_args()))
    table = Table("", "checkpoints", "process MB", "DuckDB MB", "s", "processor s", title=str(chain))
    expected: Array | None = None
    for contender in CONTENDERS:
        for with_checkpoints in (False, True):
            peak = _in_own_process(contender, chain, with_checkpoints)
            expected = peak.first if expected is None else expected
            np.testing.assert_allclose(peak.first, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
            sizes = [f"{size / 1e6:.0f}" for size in (peak.process_bytes, peak.database_bytes)]
            seconds = [f"{value:.1f}" for value in (peak.seconds, peak.processor_seconds)]
            table.add_row(contender, str(with_checkpoints), *sizes, *seconds)
    CONSOLE.print(table)


if __name__ == "__main__":
    main()
