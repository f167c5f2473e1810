"""Any EinSum, any data, any decomposition: the result is numpy's."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference import evaluate_program

import sparseeinsum as se

LABELS = "ijk"
JOINS = (
    "u * v",
    "u + v",
    "u - v",
    "(u - v) ^ 2",
    "u * exp(v)",
    "abs(u) * v + 1",
    "max(u, v)",
    "min(u, v)",
    "u * (v + 1)",
    "relu(u) * tanh(v)",
)
MAPS = ("u", "-u", "relu(u)", "sigmoid(u)", "2 * u + 1", "exp(u)", "u ^ 2", "sqrt(abs(u))", "abs(u) / 4")


@dataclass(frozen=True)
class Case:
    """One statement, its inputs, and how it is to be computed."""

    text: str
    inputs: dict[str, NDArray[Any]]
    stored: dict[str, tuple[str, ...]]
    pin: tuple[str, ...] | None
    optimizer: str
    layout: str

    @property
    def tolerance(self) -> float:
        return 1e-4 if any(array.dtype == np.float32 for array in self.inputs.values()) else 1e-9


@st.composite
def tensors(draw: st.DrawFn, labels: tuple[str, ...], bounds: dict[str, int], dtype: str) -> NDArray[Any]:
    """An array with a random share of zeros, whole slices of them, too."""
    shape = tuple(bounds[label] for label in labels)
    density = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    values = rng.uniform(-2, 2, shape) * (rng.random(shape) < density)
    if labels and bounds[labels[0]] > 1:
        values[0] = 0
    return np.asarray(values, dtype=dtype)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    bounds = {label: draw(st.integers(0 if label == "i" else 1, 4)) for label in LABELS}
    dtype = draw(st.sampled_from(["float64", "float64", "float32"]))
    operands = {}
    for name in ("U", "V")[: draw(st.integers(1, 2))]:
        labels = tuple(draw(st.permutations(LABELS))[: draw(st.integers(0, 3))])
        if len(labels) >= 1 and draw(st.booleans()) and draw(st.booleans()):
            labels = (labels[0], *labels)[:3]
        operands[name] = labels
    used = list(dict.fromkeys(label for labels in operands.values() for label in labels))
    kept = [label for label in draw(st.permutations(used)) if draw(st.booleans())]
    join = draw(st.sampled_from(JOINS if len(operands) == 2 else MAPS))
    names = {
        variable: f"{name}[{', '.join(labels)}]"
        for variable, (name, labels) in zip("uv", operands.items(), strict=False)
    }
    body = _substitute(join, names)
    gone = [label for label in used if label not in kept]
    aggregates = ["sum", "max", "min", "prod"] if all(bounds[label] > 0 for label in gone) else ["sum"]
    if gone:
        body = f"{draw(st.sampled_from(aggregates))}({body})"
    inputs = {name: draw(tensors(labels, bounds, dtype)) for name, labels in operands.items()}
    stored = {
        name: tuple(axis for axis in range(len(labels)) if draw(st.booleans())) for name, labels in operands.items()
    }
    pin = tuple(label for label in used if draw(st.booleans())) if draw(st.booleans()) else None
    return Case(
        f"W[{', '.join(kept)}] = {body}",
        inputs,
        {name: tuple(f"dim_{axis}" for axis in axes) for name, axes in stored.items()},
        pin,
        draw(st.sampled_from(["dp", "greedy", "relational", "dense"])),
        draw(st.sampled_from(["entries", "any"])),
    )


def _substitute(join: str, names: dict[str, str]) -> str:
    words = join.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").replace("-u", "- u").split(" ")
    return " ".join(names.get(word, word) for word in words)


@settings(max_examples=int(os.environ.get("EXAMPLES", "400")))
@given(cases())
def test_result_is_numpys(shared_db: se.Database, case: Case) -> None:
    expected = evaluate_program(se.program(case.text), case.inputs)["W"]
    for name, array in case.inputs.items():
        shared_db.tensor(name, array, promoted=case.stored[name])
    if case.pin is not None:
        computed = shared_db.run(case.text, pin={"W": case.pin}, layout=case.layout)
    else:
        computed = shared_db.run(case.text, optimizer=case.optimizer, layout=case.layout)
    result = computed["W"].to_numpy()
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=case.tolerance, atol=case.tolerance)
