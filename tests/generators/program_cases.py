"""Cases: programs with inputs, storage, options and numpy's results, and what a run of one must give or may refuse."""

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reading import engine_of

import sparseeinsum as se

Array = NDArray[Any]


@dataclass(frozen=True)
class Case:
    """A program, its inputs and results, and its storage and options."""

    text: str
    inputs: dict[str, Array]
    fills: dict[str, Any]
    expected: dict[str, Array]
    stored: dict[str, dict[str, int]]
    tiles: tuple[int, ...]
    pin: dict[str, dict[str, int]]
    optimizer: str
    layout: str
    outputs: tuple[str, ...]
    nonfinite: str
    tables: dict[str, str | None]  # inputs that are tables of entries, and their value columns; None: all values are 1
    workers: int | None = None
    lists: dict[str, str] = field(default_factory=dict)  # layouts of inputs that are stored in lists, where engines can

    def load(self, db: se.Database) -> None:
        for name, array in self.inputs.items():
            if name in self.tables:
                self._make_table(db, name, array)
            else:
                self.store(db, name, array)

    def store(self, db: se.Database, name: str, array: Array) -> None:
        """Load an input, in the layout that was drawn for it."""
        if name in self.lists and engine_of(db).dialect.stores_lists:
            axes = [f"dim_{axis}" for axis in range(array.ndim)]
            db.tensor(name, array, axes=axes, fill=self.fills[name], layout=self.lists[name])
        else:
            db.tensor(name, array, fill=self.fills[name], promoted=self.stored[name])

    def _make_table(self, db: se.Database, name: str, array: Array) -> None:
        """Read an input in place, in a table with a row for every entry."""
        value, fill = self.tables[name], self.fills[name]
        axes = [f"dim_{axis}" for axis in range(array.ndim)]
        db.tensor("Entries", array, fill=fill, promoted=axes)
        db.connection.execute(f"DROP TABLE IF EXISTS table_{name}")
        columns = ", ".join(axes if value is None else [*axes, value])
        db.connection.execute(f"CREATE TABLE table_{name} AS SELECT {columns} FROM Entries")
        db.tensor_from_table(name, f"table_{name}", axes, value, array.shape, dtype=str(array.dtype), fill=fill)

    def plan(self, db: se.Database) -> se.Plan:
        return db.plan(
            self.text,
            optimizer=self.optimizer,
            pin=self.pin,
            layout=self.layout,
            outputs=self.outputs,
            nonfinite=self.nonfinite,
            tiles=self.tiles,
            workers=self.workers,
        )

    @property
    def turns_nonfinite(self) -> bool:
        """Whether a result contains NaN or an infinity."""
        return any(not np.isfinite(array).all() for array in self.expected.values())

    def expect(self, name: str, actual: Array) -> None:
        """Compare a result with what numpy says.

        Of a complex number that is not finite, no part counts: one that is about 0 is 0 or not by rounding, and so NaN
        or infinite beside an infinity.
        """
        expected = self.expected[name]
        if expected.dtype.kind == "c":
            is_finite = np.isfinite(expected)
            np.testing.assert_array_equal(np.isfinite(actual), is_finite, err_msg=name)
            actual, expected = (np.where(is_finite, array, 0) for array in (actual, expected))
        np.testing.assert_allclose(actual, expected, rtol=0, atol=self._tolerance(name), err_msg=name)

    def _tolerance(self, name: str) -> float:
        """The tolerance of float64, or of float32 if any array has it, relative to the largest value, as sums cancel.

        Functions of booleans are float32. Integers and booleans are exact.
        """
        if self.expected[name].dtype.kind in "bi":
            return 0.0
        arrays = (*self.inputs.values(), *self.expected.values())
        is_single = any(array.dtype in (np.float32, np.complex64, np.bool_) for array in arrays)
        return scale_of(arrays) * (2e-4 if is_single else 1e-9)


def scale_of(arrays: tuple[Array, ...]) -> float:
    finite = [np.abs(array[np.isfinite(array)]).astype(float) for array in arrays]
    return max(1.0, *(float(values.max(initial=0)) for values in finite))


def check(db: se.Database, case: Case) -> se.Plan | None:
    """Run a case and compare with numpy; return its plan, or None if the program is refused."""
    case.load(db)
    try:
        plan = case.plan(db)
        results = db.run(plan)
    except se.SparseEinsumError as error:
        assert may_be_refused(case, error), str(error)
        return None
    assert case.nonfinite == "allow" or not must_be_refused(case)
    for name, result in results.items():
        expected, computed = case.expected[name], result.to_numpy()
        assert (computed.shape, computed.dtype) == (expected.shape, expected.dtype), name
        case.expect(name, computed)
    return plan


def may_be_refused(case: Case, error: Exception) -> bool:
    """Values that turn NaN or infinite, where that is not allowed; in a part, even where the rest hides it.

    Also whole numbers that may be beyond 2^53 among floats: the bounds of products and scans are wide.
    """
    if "may be beyond 2^53" in str(error):
        return True
    if case.nonfinite == "allow" or "turned NaN or infinite" not in str(error):
        return False
    is_of_part = re.search(r"T\d_(\d+|[a-z]+_\d+) turned", str(error)) is not None
    is_of_scan = re.search(r"T\d_[a-z]+ turned", str(error)) is not None  # one of whose values may be picked
    return case.turns_nonfinite or is_of_scan or (is_of_part and may_hide(case))


def may_hide(case: Case) -> bool:
    """Whether parts of statements may turn NaN or infinite: those of three operands, and real parts of complex ones."""
    has_infinite_fill = any(np.isinf(fill) for fill in case.fills.values())
    return has_infinite_fill or any(
        array.dtype.kind == "c" for array in (*case.inputs.values(), *case.expected.values())
    )


def must_be_refused(case: Case) -> bool:
    """A first statement that makes values NaN or infinite out of finite ones, where it aggregates anything at all.

    A shifted index may leave a label without any; the logsumexp, maximum or minimum of nothing is infinite, and no
    value turned so.
    """
    first = case.expected["T0"]
    if any(0 in array.shape for array in case.inputs.values()):
        return False
    may_lack_any = re.search(r"logsumexp|max|min", case.text) and re.search(r"\[[^]]*[-+0-9][^]]*\]", case.text)
    if may_lack_any and np.isinf(first).all():
        return False
    is_given = all(np.isfinite(array).all() for array in case.inputs.values())
    return is_given and all(np.isfinite(fill) for fill in case.fills.values()) and not np.isfinite(first).all()
