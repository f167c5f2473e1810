"""Calls of einsum in the tests of numpy, opt_einsum and sparse, made again with this package.

    python -m bench.foreign_suites

Each suite runs once, and the calls that it makes are recorded with their results and errors. Every distinct call is
then made with `se.einsum`, `se.contract_path`, `se.contract` or `se.contract_expression`, and the results are compared:
values, dtypes and shapes. The backends of opt_einsum and `use_blas`, which change no result, are left out.
"""

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

import sparseeinsum as se
from bench.call_recorder import Call, Recording
from bench.timing import CONSOLE

SUITES = {
    "numpy": ("numpy._core.tests.test_einsum",),
    "opt_einsum": ("opt_einsum",),
    "sparse": ("sparse.numba_backend.tests.test_einsum",),
}
EQUAL, REFUSED_ALIKE, REFUSED, ACCEPTED, WRONG = "equal", "refused by both", "refused here", "accepted here", "wrong"
_TOLERANCES = {"float16": 5e-3, "float32": 1e-4, "complex64": 1e-4}
_NO_RESULT = ("use_blas", "backend")  # options of opt_einsum that change no result


@dataclass(frozen=True)
class Outcome:
    """What came of a call that was made again.

    Attributes:
        call: The call.
        kind: One of EQUAL, REFUSED_ALIKE, REFUSED, ACCEPTED and WRONG.
        reason: Why it is not equal.
    """

    call: Call
    kind: str
    reason: str = ""


def record(tests: Sequence[str], selection: str = "") -> Recording:
    """Run tests of other packages, and record their calls.

    Args:
        tests: The packages or modules of the tests.
        selection: Which of them, as for `pytest -k`; all by default.
    """
    with tempfile.TemporaryDirectory() as folder:
        calls, settings = Path(folder) / "calls.pickle", Path(folder) / "pytest.ini"
        settings.write_text("[pytest]\n")
        command = [sys.executable, "-m", "pytest", "-q", "-c", str(settings), "--rootdir", folder]
        command += ["-p", "no:cacheprovider", "-p", "bench.call_recorder", "--record-calls", str(calls)]
        command += ["-k", selection, "--pyargs", *tests]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        finished = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if not calls.exists():
            raise RuntimeError(f"the tests of {', '.join(tests)} do not run:\n{finished.stdout}{finished.stderr}")
        recording: Recording = pickle.loads(calls.read_bytes())
        return recording


def replay(call: Call) -> Outcome:
    """Make a call with this package, and compare."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = _made(call)
        except Exception as error:
            return _refused(call, error)
    if call.error:
        return Outcome(call, ACCEPTED, f"{call.function} raises {call.error[0]}")
    if call.function.endswith("_path"):
        return _compared_paths(call, result)
    if call.then is None and call.function.endswith("contract_expression"):
        return Outcome(call, EQUAL)
    return _compared(call, _dense(result), _dense(call.result))


def _made(call: Call) -> Any:  # noqa: ANN401  # the result of any of the functions
    keywords = {name: value for name, value in call.keywords.items() if name not in _NO_RESULT}
    match call.function:
        case "numpy.einsum_path" | "opt_einsum.contract_path":
            return se.contract_path(*call.arguments, **call.keywords)
        case "opt_einsum.contract":
            return se.contract(*call.arguments, **keywords)
        case "opt_einsum.contract_expression":
            expression = se.contract_expression(*call.arguments, **keywords)
            if call.then is None:
                return expression
            arguments, named = call.then
            return expression(*arguments, **{name: value for name, value in named.items() if name not in _NO_RESULT})
        case _:
            return se.einsum(*call.arguments, **call.keywords)


def _refused(call: Call, error: Exception) -> Outcome:
    reason = f"{type(error).__name__}: {str(error).splitlines()[0][:110]}"
    if not isinstance(error, se.SparseEinsumError | TypeError):
        return Outcome(call, WRONG, f"an error that is not ours: {reason}")
    if not call.error:
        return Outcome(call, REFUSED, reason)
    common = {kind.__name__ for kind in type(error).__mro__}.intersection(call.error) - {"Exception"}
    is_alike = len(common) > 2  # besides object and BaseException
    return Outcome(call, REFUSED_ALIKE, "" if is_alike else f"{call.error[0]} there; here {reason}")


def _compared_paths(call: Call, result: tuple[Any, Any]) -> Outcome:
    """A path may differ from the recorded one; it must contract as many operands to one."""
    path, info = result
    operands = info.subscripts.split("->")[0].count(",") + 1
    left = operands
    for step in path:
        if not all(position < left for position in step):
            return Outcome(call, WRONG, f"{path} is no path")
        left += 1 - len(set(step))
    return Outcome(call, EQUAL) if left == 1 else Outcome(call, WRONG, f"{path} leaves {left} operands")


def _compared(call: Call, actual: Any, expected: Any) -> Outcome:  # noqa: ANN401  # arrays or numbers
    if _has_objects(call) and actual.shape == expected.shape == ():
        # A Python number, or one of numpy, or an array without axes: numpy decides by `optimize`.
        same = actual.item() == expected.item()
        return Outcome(call, EQUAL) if same else Outcome(call, WRONG, f"{expected} is expected, not {actual}")
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        reason = f"{expected.dtype} {expected.shape} are expected, not {actual.dtype} {actual.shape}"
        return Outcome(call, WRONG, reason)
    if expected.dtype.kind in "fc":
        tolerance = _TOLERANCES.get(expected.dtype.name, 1e-9)
        scale = float(np.max(np.abs(expected), initial=0, where=np.isfinite(expected)))
        same = np.allclose(actual, expected, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    else:
        same = np.array_equal(actual, expected)
    return Outcome(call, EQUAL) if same else Outcome(call, WRONG, f"{expected} is expected, not {actual}")


def _has_objects(call: Call) -> bool:
    """Whether an operand is an array of Python objects."""
    return any(isinstance(argument, np.ndarray) and argument.dtype == object for argument in call.arguments)


def _dense(result: Any) -> Any:  # noqa: ANN401  # arrays or numbers
    array: Any = result.todense() if hasattr(result, "todense") else result
    return array if isinstance(array, np.ndarray | np.generic) else np.asarray(array, object)


def written(call: Call) -> str:
    """A call as a line of text."""
    parts = [_written(argument) for argument in call.arguments]
    parts += [f"{name}={_written(value)}" for name, value in call.keywords.items()]
    return f"{call.function}({', '.join(parts)})"


def _written(argument: Any) -> str:  # noqa: ANN401  # any argument
    if isinstance(getattr(argument, "ndim", None), int) and argument.ndim:
        return f"<{argument.dtype} {argument.shape}>"
    return repr(argument)[:60]


def report(suite: str, recording: Recording, table: Table) -> list[Outcome]:
    """Replay the calls of a suite, add a row to the table, and return the outcomes."""
    outcomes = [replay(pickle.loads(call)) for call in recording.calls.values()]
    kinds = Counter(outcome.kind for outcome in outcomes)
    numbers = [recording.count, recording.unsaved, len(outcomes)]
    table.add_row(
        suite, *map(str, [*numbers, *(kinds[kind] for kind in (EQUAL, REFUSED_ALIKE, REFUSED, ACCEPTED, WRONG))])
    )
    return outcomes


def main() -> None:
    """Replay all suites."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], help="the suites; all by default")
    table = Table(title="calls of einsum in tests of other packages", title_justify="left")
    for heading in ("suite", "calls", "not saved", "distinct", EQUAL, REFUSED_ALIKE, REFUSED, ACCEPTED, WRONG):
        table.add_column(heading, justify="left" if heading == "suite" else "right")
    different = []
    for suite in parser.parse_args().suites or SUITES:
        outcomes = report(suite, record(SUITES[suite]), table)
        different += [outcome for outcome in outcomes if outcome.reason]
    CONSOLE.print(table)
    for (kind, reason), count in Counter((outcome.kind, outcome.reason) for outcome in different).most_common():
        example = next(outcome.call for outcome in different if (outcome.kind, outcome.reason) == (kind, reason))
        CONSOLE.print(f"{kind}, {count} calls: {reason}\n  such as {written(example)}", markup=False, highlight=False)


if __name__ == "__main__":
    main()
