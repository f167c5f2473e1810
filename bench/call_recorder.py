"""A plugin of pytest that records the calls of einsum and its relatives in tests of other packages.

    python -m pytest -p bench.call_recorder --record-calls calls.pickle --pyargs numpy._core.tests.test_einsum

Equal calls are recorded once; arrays of more than a few numbers count as equal if their shapes, dtypes and layouts are.
"""

import copy
import hashlib
import importlib
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest

_FUNCTIONS = {
    "numpy": ("einsum", "einsum_path"),
    "opt_einsum": ("contract", "contract_path", "contract_expression"),
    "sparse": ("einsum",),
}
_FEW_NUMBERS = 16


@dataclass(frozen=True)
class Call:
    """A call, and what came of it.

    Attributes:
        function: The function, such as numpy.einsum.
        arguments: Its arguments.
        keywords: Its named arguments.
        then: The arguments and named arguments with which the function that it returned was called; None if none was.
        result: What was returned.
        error: The classes of the error that was raised, most special first; empty if there was none.
    """

    function: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    then: tuple[tuple[Any, ...], dict[str, Any]] | None
    result: Any
    error: tuple[str, ...]


@dataclass
class Recording:
    """The calls so far.

    Attributes:
        calls: Distinct calls, pickled, by a digest of their arguments.
        count: All calls.
        unsaved: Calls with arguments that cannot be pickled, such as objects of classes in the tests.
        is_inside: Whether a recorded function is running, so that its own calls do not count.
    """

    calls: dict[str, bytes] = field(default_factory=dict)
    count: int = 0
    unsaved: int = 0
    is_inside: bool = False

    def record(self, call: Callable[[], object], function: str, *parts: Any) -> Any:  # noqa: ANN401  # what the call returns
        """Make a call and record it; `parts` are its arguments, its named ones, and those of the returned function."""
        if self.is_inside:
            return call()
        self.count += 1
        digest, before = self._saved(function, parts)
        self.is_inside = True
        result, error = None, None
        try:
            result = call()
        except Exception as raised:
            error = raised
            raise
        finally:
            self.is_inside = False
            if digest is not None and digest not in self.calls:
                names = tuple(kind.__name__ for kind in type(error).__mro__) if error else ()
                outcome = None if callable(result) else result
                arguments, keywords, then = before
                saved = Call(function, arguments, keywords, then, copy.deepcopy(outcome), names)
                self.calls[digest] = pickle.dumps(saved)
        return result

    def _saved(self, function: str, parts: tuple[Any, ...]) -> tuple[str | None, Any]:
        """A digest of arguments, and a copy of them; None if they cannot be pickled."""
        try:
            digest = hashlib.sha256(pickle.dumps((function, _outline(parts)))).hexdigest()
            return digest, pickle.loads(pickle.dumps(parts))
        except Exception:  # whatever an object raises that cannot be pickled
            self.unsaved += 1
            return None, None


def _outline(part: Any) -> Any:  # noqa: ANN401  # any argument
    """An argument without the numbers of large arrays."""
    if isinstance(part, tuple | list):
        return type(part).__name__, [_outline(item) for item in part]
    if isinstance(part, Mapping):
        return {name: _outline(value) for name, value in part.items()}
    if isinstance(part, np.ndarray) and part.size > _FEW_NUMBERS:
        return part.shape, part.dtype.str, part.flags.c_contiguous, part.flags.f_contiguous
    return part


class _RecordedExpression:
    """A ContractExpression of opt_einsum whose calls are recorded."""

    def __init__(self, recording: Recording, expression: Any, parts: tuple[Any, ...]) -> None:  # noqa: ANN401
        self._recording, self._expression, self._parts = recording, expression, parts

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401  # as the expression
        parts = *self._parts, (arguments, keywords)
        call = partial(self._expression, *arguments, **keywords)
        return self._recording.record(call, "opt_einsum.contract_expression", *parts)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # any attribute
        return getattr(self._expression, name)

    def __repr__(self) -> str:
        return repr(self._expression)

    def __str__(self) -> str:
        return str(self._expression)


def _recorded(recording: Recording, function: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def called(*arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401  # as the function
        result = recording.record(partial(original, *arguments, **keywords), function, arguments, keywords, None)
        if function == "opt_einsum.contract_expression" and not recording.is_inside:
            return _RecordedExpression(recording, result, copy.deepcopy((arguments, keywords)))
        return result

    return called


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the file."""
    parser.addoption("--record-calls", type=Path, help="the file that gets the recorded calls")


def pytest_configure(config: pytest.Config) -> None:
    """Replace the functions before the tests are imported."""
    recording = Recording()
    config.stash[_RECORDING] = recording
    for package, names in _FUNCTIONS.items():
        module = importlib.import_module(package)
        for name in names:
            setattr(module, name, _recorded(recording, f"{package}.{name}", getattr(module, name)))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write the file."""
    config.option.record_calls.write_bytes(pickle.dumps(config.stash[_RECORDING]))


_RECORDING = pytest.StashKey[Recording]()
