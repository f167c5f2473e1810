"""Any program of several statements: shared results, stored decompositions, optimizers and styles change no number."""

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference import evaluate_program

import sparseeinsum as se

Array = NDArray[Any]

LABELS = "ijklmn"  # enough for two tensors of three axes each
MAPS = ("{u}", "-{u}", "relu({u})", "sigmoid({u})", "2 * {u} + 1", "{u} ^ 2", "abs({u}) / 4")
JOINS = (
    "{u} * {v}",
    "{u} * {v}",
    "{u} + {v}",
    "{u} - {v}",
    "({u} - {v}) ^ 2",
    "{u} * sigmoid({v})",
    "abs({u}) * {v} + 1",
    "max({u}, {v})",
    "tanh({u}) * relu({v})",
    "{u} / (abs({v}) + 1)",
)
FOLDS = ("sum", "sum", "max", "min", "prod")
LARGEST = 1e6  # what is compared; sums of larger values cancel too many digits


@dataclass(frozen=True)
class Case:
    """A program, its inputs, and how it is to be stored, planned and run."""

    text: str
    inputs: dict[str, Array]
    stored: dict[str, tuple[str, ...]]
    pin: dict[str, tuple[str, ...]]
    optimizer: str
    layout: str
    outputs: tuple[str, ...]
    style: str


@dataclass
class Draft:
    """A program while it grows: the shape of everything that a statement may read, and the labels of the statements."""

    shapes: dict[str, tuple[int, ...]]
    lines: list[str] = field(default_factory=list)
    labels: dict[str, list[str]] = field(default_factory=dict)

    def add_statement(self, draw: st.DrawFn) -> None:
        """One or two references, the first of them often to the result before."""
        target = f"T{len(self.lines)}"
        known = list(self.shapes)
        names = [draw(st.sampled_from([known[-1], *known])), draw(st.sampled_from([*self.labels, *known]))]
        sizes: dict[str, int] = {}
        operands = [
            f"{name}[{', '.join(self._reference(draw, name, sizes))}]" for name in names[: draw(st.integers(1, 2))]
        ]
        kept = [label for label in draw(st.permutations(list(sizes))) if draw(st.integers(0, 2))][:3]
        body = draw(st.sampled_from(MAPS if len(operands) == 1 else JOINS)).format(u=operands[0], v=operands[-1])
        gone = [label for label in sizes if label not in kept]
        if gone:
            folds = FOLDS if all(sizes[label] for label in gone) else ("sum",)
            body = f"{draw(st.sampled_from(folds))}({body})"
        self.lines.append(f"{target}[{', '.join(kept)}] = {body}")
        self.shapes[target] = tuple(sizes[label] for label in kept)
        self.labels[target] = list(sizes)

    def _reference(self, draw: st.DrawFn, name: str, sizes: dict[str, int]) -> list[str]:
        """Labels of one reference, shared with the other and sometimes repeated where the sizes allow it."""
        labels: list[str] = []
        for bound in self.shapes[name]:
            shared = [label for label, size in sizes.items() if size == bound and label not in labels]
            repeated = [label for label in labels if sizes[label] == bound][: draw(st.integers(0, 1))]
            new = next(label for label in LABELS if label not in sizes)
            label = draw(st.sampled_from([*shared, *repeated, new]))
            sizes[label] = bound
            labels.append(label)
        return labels


@st.composite
def arrays(draw: st.DrawFn, shape: tuple[int, ...], dtype: str) -> Array:
    """An array of which a random share is 0, and often a whole slice."""
    density = draw(st.sampled_from([0.0, 0.1, 0.4, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = np.where(rng.random(shape) < density, rng.uniform(-1.5, 1.5, shape), 0)
    if shape and shape[0] > 1 and draw(st.booleans()):
        values[0] = 0
    return np.asarray(values, dtype=dtype)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    shapes = st.lists(st.sampled_from([1, 2, 3, 3, 3]), max_size=3).map(tuple)
    draft = Draft({name: draw(shapes) for name in ("A", "B")})
    if draw(st.integers(0, 9)) == 0:
        draft.shapes["A"] = (0, *draft.shapes["A"][:2])
    dtype = draw(st.sampled_from(["float64", "float64", "float64", "float32"]))
    inputs = {name: draw(arrays(shape, dtype)) for name, shape in draft.shapes.items()}
    for _ in range(draw(st.integers(2, 4))):
        draft.add_statement(draw)
    seldom = st.sampled_from([False, False, True])
    optimizer = draw(st.sampled_from(["dp", "dp", "greedy", "relational", "dense"]))
    return Case(
        "\n".join(draft.lines),
        inputs,
        {
            name: tuple(f"dim_{axis}" for axis in range(array.ndim) if draw(st.booleans()))
            for name, array in inputs.items()
        },
        {
            name: tuple(label for label in labels if draw(st.booleans()))
            for name, labels in draft.labels.items()
            if optimizer in ("dp", "greedy") and draw(seldom)  # the others promote as they do
        },
        optimizer,
        draw(st.sampled_from(["entries", "any"])),
        tuple(name for name in draft.labels if draw(seldom)),
        draw(st.sampled_from(["cte", "staged"])),
    )


@settings(max_examples=int(os.environ.get("EXAMPLES", "100")))
@given(cases())
def test_results_are_numpys(shared_db: se.Database, case: Case) -> None:
    program = se.program(case.text)
    expected = evaluate_program(program, case.inputs)
    scale = max(np.abs(array).max(initial=1) for array in expected.values())
    assume(scale <= LARGEST)
    is_single = any(array.dtype == np.float32 for array in case.inputs.values())
    tolerance = scale * (1e-4 if is_single else 1e-10)
    for name, array in case.inputs.items():
        shared_db.tensor(name, array, promoted=case.stored[name])
    plan = shared_db.plan(program, optimizer=case.optimizer, pin=case.pin, layout=case.layout, outputs=case.outputs)
    assert set(plan.outputs) == {*program.outputs, *case.outputs}
    results = {name: result.to_numpy() for name, result in shared_db.run(plan).items()}
    assert set(results) == set(plan.outputs)
    if case.layout == "entries":
        rows = rows_of(shared_db, plan.sql(case.style))
        results |= {
            f"{name} by {case.style}": as_array(found, expected[name])
            for name, found in zip(plan.outputs, rows, strict=True)
        }
    for name, result in results.items():
        wanted = expected[name.split()[0]]
        assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(result, wanted, rtol=0, atol=tolerance, err_msg=name)


def rows_of(db: se.Database, text: str) -> list[list[tuple[Any, ...]]]:
    """The rows of every statement that returns some; temporary tables go again."""
    db.connection.execute("BEGIN")
    try:
        cursors = [
            (statement, db.connection.execute(statement).fetchall())
            for statement in text.split(";\n")
            if statement.strip()
        ]
    finally:
        db.connection.execute("ROLLBACK")
    return [rows for statement, rows in cursors if not statement.lstrip().startswith("CREATE")]


def as_array(rows: list[tuple[Any, ...]], like: Array) -> Array:
    found = np.zeros_like(like)
    for *keys, value in rows:
        found[tuple(keys)] = value
    return found
