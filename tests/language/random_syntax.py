"""Random statements: what they look like as text, and as Python expressions that build the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import sparseeinsum as se
from sparseeinsum.language.python_expressions import LabelledExpression
from sparseeinsum.language.syntax import free_labels

LABELS = ("i", "j", "K", "l2")
TENSORS = ("A", "B", "true", "index", "x_1")
NUMBERS = {
    "2": 2,
    "-3": -3,
    "2.0": 2.0,
    "-.5": -0.5,
    "1e300": 1e300,
    "-inf": -float("inf"),
    "true": True,
    "2j": 2j,
    "-2j": -2j,
    "1 - 2j": 1 - 2j,
    "0": 0,
}


@dataclass(frozen=True)
class Pair:
    """The same expression as text and as a Python expression; the text has all parentheses."""

    text: str
    built: Any  # a se.TensorExpression, or a number

    @property
    def labels(self) -> tuple[str, ...]:
        """Its free labels in order of appearance."""
        if not isinstance(self.built, se.TensorExpression):
            return ()
        spelled = {label.lower(): label for label in LABELS}
        return tuple(spelled[label] for label in dict.fromkeys(free_labels(self.built.tree)))


BINARY: Sequence[tuple[str, Callable[[Any, Any], Any]]] = (
    ("({} + {})", lambda a, b: a + b),
    ("({} - {})", lambda a, b: a - b),
    ("({} * {})", lambda a, b: a * b),
    ("({} / {})", lambda a, b: a / b),
    ("({} ^ {})", lambda a, b: a**b),
    ("({} < {})", lambda a, b: a < b),
    ("({} <= {})", lambda a, b: a <= b),
    ("({} > {})", lambda a, b: a > b),
    ("({} >= {})", lambda a, b: a >= b),
    ("({} == {})", lambda a, b: a == b),
    ("({} != {})", lambda a, b: a != b),
    ("({} and {})", lambda a, b: a & b),
    ("({} or {})", lambda a, b: a | b),
    ("max({}, {})", np.maximum),
    ("min({}, {})", np.minimum),
    ("where({0} < 1, {1}, {0})", lambda a, b: se.where(a < 1, b, a)),
)
UNARY: Sequence[tuple[str, Callable[[Any], Any]]] = (
    ("(-{})", lambda a: -a),
    ("(not {})", lambda a: ~a),
    ("abs({})", abs),
    ("exp({})", np.exp),
    ("conj({})", np.conjugate),
    ("relu({})", lambda a: a.relu()),
    ("sigmoid({})", lambda a: a.sigmoid()),
    ("(2 * {})", lambda a: 2 * a),
    ("(1 - {})", lambda a: 1 - a),
    ("(1 / {})", lambda a: 1 / a),
    ("(2 ^ {})", lambda a: 2**a),
    ("(1 < {})", lambda a: np.less(1, a)),
)
FOLDS = (
    *("sum", "prod", "max", "min", "any", "all", "logsumexp"),
    *("mean", "var", "norm", "count", "sumsq", "argmax", "argmin"),
)
KEEPING = ("softmax", "log_softmax", "layer_norm")


def references() -> st.SearchStrategy[Pair]:
    labels = st.lists(st.sampled_from(LABELS), max_size=2).map(tuple)
    return st.tuples(st.sampled_from(TENSORS), labels).map(
        lambda drawn: Pair(f"{drawn[0]}[{', '.join(drawn[1])}]", se.tensor(drawn[0])[drawn[1]])
    )


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> Pair:
    """An expression with at least one tensor; aggregates name their labels."""
    kind = (
        draw(st.sampled_from(["reference", "unary", "binary", "number", "fold", "keep", "range", "bound"]))
        if depth
        else ""
    )
    if kind in ("", "reference"):
        return draw(references())
    first = draw(expressions(depth - 1))
    if kind == "unary":
        text, build = draw(st.sampled_from(UNARY))
        return Pair(text.format(first.text), build(first.built))
    if kind in ("fold", "keep") and first.labels:
        names = FOLDS if kind == "fold" else KEEPING
        name, label = draw(st.sampled_from(names)), draw(st.sampled_from(first.labels))
        others = ", 1e-05" if name == "layer_norm" else ""
        return Pair(f"{name}[{label}]({first.text}{others})", getattr(first.built, name)(label))
    second = draw(expressions(depth - 1))
    if kind == "number":
        number = draw(st.sampled_from(list(NUMBERS)))
        second = Pair(f"({number})", NUMBERS[number])
    if kind == "range":
        label, bound = draw(st.sampled_from(LABELS)), draw(st.integers(0, 3))
        second = Pair(f"index({label}: {bound})", se.index(label, bound))
    if kind == "bound":
        label = draw(st.sampled_from(LABELS))
        second = Pair(f"bound({label})", se.bound(label))
    text, operate = draw(st.sampled_from(BINARY))
    return Pair(text.format(first.text, second.text), operate(first.built, second.built))


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, dict[str, LabelledExpression]]:
    """Statements that read each other; labels that occur in several scopes are refused by lowering."""
    lines: list[str] = []
    built: dict[str, LabelledExpression] = {}
    for name in ("T0", "T1", "A_sum")[: draw(st.integers(1, 3))]:
        pair = draw(expressions())
        reads: bool = draw(st.booleans())
        if lines and reads:
            earlier = draw(st.sampled_from(list(built)))
            labels = built[earlier].labels
            factor = Pair(f"{earlier}[{', '.join(labels)}]", se.tensor(earlier)[labels])
            pair = Pair(f"({pair.text} * {factor.text})", pair.built * factor.built)
        result_labels: tuple[str, ...] = tuple(draw(st.permutations(pair.labels)))
        folds: bool = draw(st.booleans())
        if result_labels and folds:
            result_labels = result_labels[1:]
            pair = Pair(f"sum({pair.text})", pair.built.sum())
        lines.append(f"{name}[{', '.join(result_labels)}] = {pair.text}")
        built[name] = pair.built[result_labels]
    return "\n".join(lines), built
