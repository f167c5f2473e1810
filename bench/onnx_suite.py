"""Runs the backend tests that the onnx package brings, and counts what is equal, refused and wrong.

    python -m bench.onnx_suite [--engine postgresql://...] [--only PART OF A NAME] [--list]

A test is a model, inputs, and outputs: of one node (node), of what torch exported (pytorch-converted and
pytorch-operator), or of several nodes (simple). Outputs are equal within the tolerances that the test names. Tests
whose inputs or outputs are no tensors of numbers (texts, sequences, optionals) are not counted. Models of operator sets
before 7 are converted first.
"""

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, version_converter
from onnx.backend import test
from onnx.backend.test.case.node import collect_testcases

import sparseeinsum as se

_PLAIN = (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16)  # dtypes of TensorProto: numbers and truth values


_KINDS = ("node", "pytorch-converted", "pytorch-operator", "simple")
_FIRST, _CONVERTED = 7, 13  # the first operator set that is read, and the one that earlier ones are converted to
_KNOWN = "equal with all inputs but the first known"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a test: `equal`, `refused`, `wrong` or `error`, and why."""

    name: str
    operator: str
    kind: str
    reason: str = ""


def is_counted(model: onnx.ModelProto) -> bool:
    """Whether all inputs and outputs are tensors of numbers."""
    graph = model.graph
    types = [value.type for value in (*graph.input, *graph.output)]
    return all(value.HasField("tensor_type") and value.tensor_type.elem_type in _PLAIN for value in types)


def outcome_of(case: Any, target: str | None) -> Outcome:  # noqa: ANN401
    """Run one test."""
    operator = case.model.graph.node[-1].op_type
    for data in case.data_sets:
        inputs, outputs = ([_array(array) for array in part] for part in data)
        kind, reason = _compare(case, inputs, outputs, target, 0)
        if "depend on the data" in reason and len(inputs) > 1:
            kind, reason = _compare(case, inputs, outputs, target, len(inputs) - 1)
            kind = {"equal": _KNOWN}.get(kind, kind)
        if kind not in ("equal", _KNOWN):
            break
    return Outcome(case.name, operator, kind, reason)


def _compare(case: Any, inputs: Any, outputs: Any, target: str | None, known: int) -> tuple[str, str]:  # noqa: ANN401
    """Compare results with outputs; as many of the last inputs as `known` says are arrays of the model."""
    try:
        network = se.read_onnx(_with_inputs(case.model, inputs, known))
    except se.SemanticsError as error:
        return "refused", str(error).partition(": ")[2] or str(error)
    except Exception as error:  # whatever happens is counted
        return "error", f"(reading) {type(error).__name__}: {error}"[:200]
    try:
        with se.connect(target) as db:
            network.load(db)
            network.load_inputs(db, dict(zip(network.inputs, map(_plain, inputs), strict=False)))
            results = db.run(network.program, nonfinite="allow")
            arrays = [results[name].to_numpy() for name in network.outputs.values()]
    except se.SemanticsError as error:
        return "refused", f"(at run) {str(error)[:100]}"
    except Exception as error:  # whatever happens is counted
        return "error", f"{type(error).__name__}: {error}".splitlines()[0][:200]
    for array, expected in zip(arrays, outputs, strict=True):
        wanted = np.asarray(expected)
        tolerance = 1e-2 if wanted.dtype.itemsize == 2 and wanted.dtype.kind not in "iu" else case.rtol
        wanted = _plain(wanted)
        if array.shape != wanted.shape:
            return "wrong", f"shape {array.shape} instead of {wanted.shape}"
        if not np.allclose(array, wanted, rtol=tolerance, atol=max(case.atol, 1e-6), equal_nan=True):
            return "wrong", f"{array.reshape(-1)[:3]} instead of {wanted.reshape(-1)[:3]}"
    return "equal", ""


def _with_inputs(model: Any, inputs: Any, known: int) -> Any:  # noqa: ANN401
    """The model with the shapes of the inputs; the last ones become arrays of the model."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    stored = {info.name for info in copy.graph.initializer}
    inputs_of_model = list(zip((info for info in copy.graph.input if info.name not in stored), inputs, strict=True))
    for info, array in inputs_of_model:
        info.type.tensor_type.shape.ClearField("dim")
        for size in np.shape(array):
            info.type.tensor_type.shape.dim.add().dim_value = size
    for info, array in inputs_of_model[len(inputs_of_model) - known :]:
        copy.graph.initializer.append(numpy_helper.from_array(np.asarray(array), info.name))
    return copy


def _array(data: Any) -> Any:  # noqa: ANN401
    return numpy_helper.to_array(data) if isinstance(data, onnx.TensorProto) else np.asarray(data)


def _plain(data: Any) -> Any:  # noqa: ANN401
    array = np.asarray(data)
    return array.astype(np.float32) if array.dtype.itemsize <= 2 and array.dtype.kind not in "iub" else array


@dataclass(frozen=True, slots=True)
class StoredCase:
    """A test in files."""

    name: str
    model: onnx.ModelProto
    data_sets: list[tuple[list[Any], list[Any]]]
    rtol: float = 1e-3
    atol: float = 1e-7


def stored_cases(kind: str, only: str) -> Iterator[StoredCase]:
    """The tests of a kind that have `only` in their names."""
    for folder in sorted((Path(test.__path__[0]) / "data" / kind).iterdir()):
        if only in folder.name:
            model = onnx.load(folder / "model.onnx")
            if not is_counted(model):
                continue
            if any(opset.domain in ("", "ai.onnx") and opset.version < _FIRST for opset in model.opset_import):
                model = version_converter.convert_version(model, _CONVERTED)
            sets = [
                (_files(data_set, "input"), _files(data_set, "output"))
                for data_set in sorted(folder.glob("test_data_set_*"))
            ]
            yield StoredCase(folder.name, model, sets)


def _files(folder: Path, kind: str) -> list[Any]:
    """The tensors in the files of a data set."""
    paths = sorted(folder.glob(f"{kind}_*.pb"), key=lambda path: int(path.stem.split("_")[1]))
    return [onnx.load_tensor(path) for path in paths]


def outcomes(kind: str, only: str, target: str | None) -> Iterator[Outcome]:
    """The outcomes of the tests of a kind that have `only` in their names."""
    cases = collect_testcases(None) if kind == "node" else stored_cases(kind, only)
    for case in cases:
        if only in case.name and case.model is not None and is_counted(case.model):
            yield outcome_of(case, target)


def main() -> None:
    """Print the counts, and the reasons of refusals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default=None)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true", help="print every test that is not equal")
    arguments = parser.parse_args()
    print(f"onnx {onnx.__version__}")
    for kind in _KINDS:
        report(kind, arguments)


def report(kind: str, arguments: argparse.Namespace) -> None:
    """Run the tests of a kind, and print the counts and the reasons of refusals."""
    start = time.perf_counter()
    tests = list(outcomes(kind, arguments.only, arguments.engine))
    counts = Counter(outcome.kind for outcome in tests)
    print(f"\n{kind}: {len(tests)} tests in {time.perf_counter() - start:.0f} s")
    print(", ".join(f"{counts[kind]} {kind}" for kind in ("equal", _KNOWN, "refused", "wrong", "error")))
    reasons: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for outcome in tests:
        if outcome.kind not in ("equal", _KNOWN):
            reasons[outcome.kind, outcome.reason].append(outcome)
    for (kind_of_outcome, reason), those in sorted(reasons.items(), key=lambda item: -len(item[1])):
        operators = ", ".join(sorted({outcome.operator for outcome in those}))
        print(f"{len(those):4} {kind_of_outcome}: {reason} ({operators})")
        if arguments.list:
            print("".join(f"       {outcome.name}\n" for outcome in those), end="")
    equal = sorted({outcome.operator for outcome in tests if outcome.kind in ("equal", _KNOWN)})
    print(f"{len(equal)} operators with equal results: {', '.join(equal)}")


if __name__ == "__main__":
    main()
