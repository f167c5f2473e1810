"""Compares networks in the ONNX format with onnxruntime: results, and times to read, plan and run.

    python -m bench.networks [--engine postgresql://...]

It needs the packages onnxruntime and magika, whose model for types of files is one of the networks. Each run takes new
inputs from the database and returns an array; loading the inputs is not counted. Times are medians of runs after the
first.
"""

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

import sparseeinsum as se
from bench.onnx_networks import convolutional, perceptron, transformer_block

_RUNS = 7


@dataclass(frozen=True, slots=True)
class Case:
    """A network, its inputs by name, and the sizes of its named axes."""

    title: str
    model: onnx.ModelProto
    inputs: dict[str, Any]
    sizes: dict[str, int]


def cases() -> Iterator[Case]:
    """The networks."""
    random = np.random.default_rng(0)
    yield Case(
        "perceptron 784-256-10, batch 64",
        perceptron(random, (784, 256, 10)),
        {"x": random.standard_normal((64, 784), np.float32)},
        {"batch": 64},
    )
    yield Case(
        "convolutional, 3 x 32 x 32, 16 channels, batch 4",
        convolutional(random, 32, 16, 10),
        {"x": random.standard_normal((4, 3, 32, 32), np.float32)},
        {"batch": 4},
    )
    for length, width, heads, words in ((16, 32, 4, 100), (128, 256, 8, 5000)):
        yield Case(
            f"transformer block, {length} tokens of {words}, width {width}, {heads} heads",
            transformer_block(random, length, width, heads, words),
            {"tokens": random.integers(0, words, (1, length))},
            {},
        )
    path = _magika()
    if path is not None:
        yield Case("magika, 2,048 bytes", onnx.load(path), {"bytes": _bytes_of(Path(__file__))}, {"unk__214": 1})


def _magika() -> Path | None:
    """The model that the package magika brings, if it is installed."""
    spec = importlib.util.find_spec("magika")
    folders = spec.submodule_search_locations if spec is not None else None
    return next(Path(folders[0]).glob("models/*/model.onnx"), None) if folders else None


def _bytes_of(path: Path) -> Any:  # noqa: ANN401  # an array
    """The first and the last 1,024 bytes of a file."""
    content = path.read_bytes().strip()
    return np.frombuffer(content[:1024] + content[-1024:], np.uint8)[None].astype(np.int32)


def _median(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result, the seconds of the first call, and the median of those of the others."""
    seconds = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
    return result, seconds[0], statistics.median(seconds[1:])


def measure(case: Case, target: str | None) -> str:
    """A line of figures of a network."""
    start = time.perf_counter()
    network = se.read_onnx(case.model, **case.sizes)
    reading = time.perf_counter() - start
    session = onnxruntime.InferenceSession(case.model.SerializeToString())
    (expected, *_), _, peer = _median(lambda: session.run(None, case.inputs))
    with se.connect(target) as db:
        network.load(db)
        network.load_inputs(db, case.inputs)
        start = time.perf_counter()
        plan = db.plan(network.program)
        planning = time.perf_counter() - start
        (output,) = network.outputs.values()
        result, first, median = _median(lambda: db.run(plan)[output].to_numpy())
    difference = np.abs(result - expected).max()
    return (
        f"{case.title}: {len(network.program.einsums)} EinSums, read {reading * 1e3:.0f} ms, "
        f"planned {planning * 1e3:.0f} ms, first run {first * 1e3:.0f} ms, run {median * 1e3:.1f} ms, "
        f"onnxruntime {peer * 1e3:.2f} ms; difference at most {difference:.1e} of {np.abs(expected).max():.2g}"
    )


def main() -> None:
    """Print a line for each network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default=None)
    target = parser.parse_args().engine
    print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}, {_RUNS} runs")
    for case in cases():
        print(measure(case, target))


if __name__ == "__main__":
    main()
