"""Random programs: statements over tensors of any dtype, fill, density and shape, how they are stored and planned."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from program_cases import Array, Case, scale_of

import sparseeinsum as se
from sparseeinsum.semantics.dense import evaluate_program

LABELS = "ijklmnpqrs"
FAMILIES = {
    "float64": ("float64",),
    "float32": ("float32",),
    "int64": ("int64",),
    "bool": ("bool",),
    "complex": ("complex128", "complex64"),
    "mixed": ("float64", "float32", "int64", "bool", "complex128"),
}
FILLS: dict[str, tuple[Any, ...]] = {
    "f": (0.0, 0.0, 0.0, 1.0, -0.5, np.inf, -np.inf),
    "i": (0, 0, 0, 1, -2),
    "b": (False, False, True),
    "c": (0j, 0j, 1 + 0.5j),
}
ORDERED = (
    "{u} * {v}",
    "{u} * {v}",
    "{u} + {v}",
    "{u} - {v}",
    "({u} - {v}) ^ 2",
    "abs({u}) * {v} + 1",
    "max({u}, {v})",
    "min({u}, {v})",
    "where({u} > {v}, {u}, {v})",
    "where({u} == 0, 0, {v})",
    "{u} * ({v} + 1)",
    "{u} <= {v}",
    "{u} != 0 and {v} > 0",
)
FLOATING = (
    "{u} * sigmoid({v})",
    "exp({u}) * {v}",
    "tanh({u}) * relu({v})",
    "{u} / (abs({v}) + 1)",
    "{u} / {v}",
    "sqrt(abs({u})) - {v}",
    "exp({u} - {v})",
    "sin({u}) * {v}",
    "cos({u} - {v})",
    "clip({u}, -0.5, {v})",
    "logaddexp({u}, {v})",
    "erf({u}) + cosh({v})",
)
JOINS = {
    "f": (*ORDERED, *FLOATING),
    "i": (*ORDERED, "{u} / (abs({v}) + 1)", "{u} * 0.5 + {v}", "mod({u}, abs({v}) + 1)", "clip({u}, {v}, 2)"),
    "b": ("{u} * {v}", "{u} + {v}", "{u} and {v}", "{u} or not {v}", "{u} == {v}", "{u} < {v}", "max({u}, {v})"),
    "c": (
        "{u} * {v}",
        "{u} + {v}",
        "{u} - {v}",
        "conj({u}) * {v}",
        "abs({u}) * {v}",
        "{u} == {v}",
        "{u} * ({v} + 1)",
        "sqrt(abs({u}) - 0.5) * {v}",
        "where(abs({u}) > abs({v}), {u}, {v})",
        "sin({u}) * {v}",
        "{u} - cosh({v})",
        "abs({u}) <= abs({v})",
    ),
}
MAPS = {
    "f": (
        "{u}",
        "-{u}",
        "relu({u})",
        "sigmoid({u})",
        "2 * {u} + 1",
        "{u} ^ 2",
        "abs({u}) / 4",
        "exp({u})",
        "{u} > 0.5",
        "atan({u})",
        "asin({u} / (abs({u}) + 1))",
        "sinh({u} / 4)",
        "normal_quantile(sigmoid({u}) / 2 + 0.25)",
        "erf({u})",
    ),
    "i": (
        "{u}",
        "-{u}",
        "relu({u})",
        "2 * {u} + 1",
        "{u} ^ 2",
        "sign({u})",
        "{u} / 4",
        "mod({u}, 3)",
        "floor({u})",
        "cos({u})",
        "{u} >= 1",
        "1.5 * {u}",
        "uniform(3, {u}, 4)",
        "threefry({u}, 5)",
    ),
    "b": ("{u}", "not {u}", "{u} or false", "where({u}, 2, 3)", "{u} * 2.5"),
    "c": ("{u}", "-{u}", "conj({u})", "abs({u})", "{u} * 2 + 1", "{u} ^ 2", "{u} != 0", "relu(abs({u}) - 0.5)"),
}
OF_THREE = {
    "f": ("{u} * {v} * {w}", "{u} + {v} + {w}", "({u} + {v}) * {w}", "where({u} > 0, {v}, {w})", "max({u}, {v}, {w})"),
    "i": ("{u} * {v} * {w}", "{u} + {v} - {w}", "({u} + {v}) * {w}"),
    "b": ("{u} and {v} and {w}", "{u} * {v} * {w}", "({u} or {v}) and {w}"),
    "c": ("{u} * {v} * {w}", "({u} + {v}) * conj({w})"),
}
FOLDS = {
    "f": ("sum", "sum", "prod", "max", "min", "any", "all", "logsumexp"),
    "i": ("sum", "sum", "prod", "max", "min", "any", "all", "logsumexp"),
    "b": ("sum", "any", "all", "max", "min", "prod"),
    "c": ("sum", "sum", "prod", "any"),
}
SCANS = {
    "f": ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"),
    "i": ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"),
    "b": ("cumsum", "cumprod", "cummax", "cummin"),
    "c": ("cumsum", "cumprod"),
}
_TRUTH = ("<", ">", "==", "!=", " and ", " or ", "not ")
LARGEST = 1e6  # of compared values; sums of larger values cancel too many digits


@dataclass
class Draft:
    """A program under construction, with the value of every tensor that a statement may read."""

    values: dict[str, Array]
    inputs: int = 0
    lines: list[str] = field(default_factory=list)
    labels: dict[str, list[str]] = field(default_factory=dict)

    def add_statement(self, draw: st.DrawFn) -> None:
        """One to three references, the first of them often to the result before."""
        target = f"T{len(self.lines)}"
        tensors = list(self.values)
        names = [draw(st.sampled_from([tensors[-1], *tensors])), *(draw(st.sampled_from(tensors)) for _ in range(2))]
        names = names[: draw(st.sampled_from([1, 2, 2, 2, 3]))]
        sizes: dict[str, int] = {}
        operands = [f"{name}[{', '.join(self._reference(draw, name, sizes))}]" for name in names]
        assume(np.prod([max(size, 1) for size in sizes.values()]) <= 4000)
        kind = np.result_type(*(self.values[name].dtype for name in names)).kind
        body = draw(st.sampled_from((MAPS, JOINS, OF_THREE)[len(names) - 1][kind]))
        body = body.replace("max({u}, {v}, {w})", "max(max({u}, {v}), {w})")
        body = body.format(**dict(zip("uvw", operands, strict=False)))
        if any(word in body for word in _TRUTH):
            kind = "b"
        along = draw(st.sampled_from([None, None, None, *sizes]))
        if along is not None:
            body = f"{draw(st.sampled_from(SCANS[kind]))}[{along}]({body})"
            kind = "i" if kind == "b" else kind
        labels = [label for label in draw(st.permutations(list(sizes))) if draw(st.integers(0, 2))][:3]
        gone = [label for label in sizes if label not in labels]
        inside = {along}
        if len(gone) == 1 and draw(st.integers(0, 3)) == 0:
            body = f"{draw(st.sampled_from(('first', 'last')))}({body})"
            inside |= set(gone)
        elif gone:
            body = f"{draw(st.sampled_from(FOLDS[kind]))}({body})"
        self.lines.append(f"{target}[{', '.join(labels)}] = {body}")
        self.labels[target] = [label for label in sizes if label not in inside]
        self._compute(target)

    def _compute(self, target: str) -> None:
        line = self.lines[-1]
        read = {name: array for name, array in self.values.items() if f"{name}[" in line}
        try:
            with np.errstate(all="ignore"):
                self.values[target] = evaluate_program(se.program(line), read)[target]
                as_floats = {name: array.astype(complex) for name, array in read.items()}
                scale = self._scale(line, as_floats, target)
        except (TypeError, ValueError, IndexError, se.SparseEinsumError):
            # numpy has no such operation, or nothing to pick from; or an index does not exist
            assume(False)
        assume(scale <= LARGEST)

    def _scale(self, line: str, read: dict[str, Array], target: str) -> float:
        values = self.values[target]
        if values.dtype.kind != "i":
            return scale_of((values,))
        # int64 that wraps around looks small: compute in floating point, too
        floats = {name: array.real for name, array in read.items()}
        return scale_of((evaluate_program(se.program(line), floats)[target].astype(float), values))

    def _reference(self, draw: st.DrawFn, name: str, sizes: dict[str, int]) -> list[str]:
        """Labels of one reference, shared with others and sometimes repeated where the sizes allow it; or indices."""
        labels: list[str] = []
        for bound in self.values[name].shape:
            if draw(st.integers(0, 9)) == 0:
                labels.append(self._index(draw, bound, sizes))
                continue
            shared = [label for label, size in sizes.items() if size == bound and label not in labels]
            repeated = [label for label in labels if sizes.get(label) == bound][: draw(st.integers(0, 1))]
            new = [label for label in LABELS if label not in sizes][:1]
            label = draw(st.sampled_from([*shared, *repeated, *new]))
            sizes[label] = bound
            labels.append(label)
        return labels

    def _index(self, draw: st.DrawFn, bound: int, sizes: dict[str, int]) -> str:
        """An index that is fixed, shifted, dilated or reversed, or a sum of labels, for an axis of a bound."""
        kind = draw(st.sampled_from(["fixed", "shifted", "shifted", "reversed", "sum"]))
        if kind == "fixed" and bound:
            return str(draw(st.integers(-bound, bound - 1)))
        offset, step = draw(st.integers(0, min(2, bound))), draw(st.sampled_from([1, 1, 2]))
        if kind == "sum" and sizes:
            other = draw(st.sampled_from(list(sizes)))
            text, offset, step = f"{other} + ", sizes[other] - 1, 1
        else:
            text = "-1 - " if kind == "reversed" else f"{offset} + {step}*"
            offset, step = (0, 1) if kind == "reversed" else (offset, step)
        most = max((bound - 1 - offset) // step + 1, 0)
        (new,) = [label for label in LABELS if label not in sizes][:1]
        label = draw(st.sampled_from([new, *(shared for shared, size in sizes.items() if 0 < size <= most)]))
        sizes.setdefault(label, most)
        return f"{text}{label}"


@st.composite
def arrays(draw: st.DrawFn, shape: tuple[int, ...], dtype: str, fill: Any) -> Array:  # noqa: ANN401  # a number
    """An array in which a random share of entries, and often a whole slice, is the fill."""
    density = draw(st.sampled_from([0.0, 0.1, 0.4, 0.4, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values: Array
    match np.dtype(dtype).kind:
        case "f":
            values = rng.uniform(-1.5, 1.5, shape)
        case "i":
            values = rng.integers(-3, 4, shape)
        case "b":
            values = rng.random(shape) < 0.5
        case _:
            values = rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)
    array = np.where(rng.random(shape) < density, values, fill)
    if shape and shape[0] > 1 and draw(st.booleans()):
        array[0] = fill
    return np.asarray(array).astype(dtype)


@st.composite
def list_layouts(draw: st.DrawFn, name: str, rank: int) -> str:
    """A layout in lists of a tensor that has axes, as in A[DIM_0:2, ~dim_1, ~dim_0]."""
    axes = [f"dim_{axis}" for axis in range(rank)]
    compressed = draw(st.permutations(axes))[: draw(st.integers(1, rank))]
    tiles = {axis: draw(st.sampled_from(["", ":2", ":3"])) for axis in compressed}
    keys = [f"{axis.upper()}{tiles.get(axis, '')}" for axis in axes if tiles.get(axis, ":")]
    return f"{name}[{', '.join([*keys, *(f'~{axis}' for axis in compressed)])}]"


@st.composite
def cases(draw: st.DrawFn, family: str, optimizer: str) -> Case:
    """Programs whose inputs have the dtypes of a family, planned by one optimizer."""
    seldom = st.sampled_from([False, False, True])
    shapes = st.lists(st.sampled_from([1, 2, 3, 3, 5]), max_size=3).map(tuple)
    names = ("A", "B", "C")[: draw(st.integers(2, 3))]
    drawn = {name: draw(shapes) for name in names}
    if draw(st.integers(0, 9)) == 0:
        drawn["A"] = (0, *drawn["A"][:2])
    inputs, fills = {}, {}
    for name, shape in drawn.items():
        dtype = draw(st.sampled_from(FAMILIES[family]))
        fills[name] = draw(st.sampled_from(FILLS[np.dtype(dtype).kind]))
        inputs[name] = draw(arrays(shape, dtype, fills[name]))
    tables = {
        name: draw(st.sampled_from(["val", None])) for name, shape in drawn.items() if len(shape) and draw(seldom)
    }
    for name, value in tables.items():
        if value is None:
            inputs[name] = np.where(inputs[name] == fills[name], fills[name], 1).astype(inputs[name].dtype)
    if draw(st.integers(0, 7)) == 0:
        _spoil(draw, {name: array for name, array in inputs.items() if tables.get(name, "val") is not None})
    draft = Draft(dict(inputs))
    for _ in range(draw(st.integers(1, 4))):
        draft.add_statement(draw)
    return Case(
        "\n".join(draft.lines),
        inputs,
        fills,
        {name: draft.values[name] for name in draft.labels},
        {
            name: {
                f"dim_{axis}": draw(st.sampled_from([1, 1, 2, 3])) for axis in range(array.ndim) if draw(st.booleans())
            }
            for name, array in inputs.items()
        },
        draw(st.sampled_from([(), (), (2,), (2, 4)])),
        {
            name: {label: draw(st.sampled_from([1, 1, 2, 3, 4])) for label in labels if draw(st.booleans())}
            for name, labels in draft.labels.items()
            if optimizer in ("dp", "greedy") and draw(seldom)  # the others choose labels themselves
        },
        optimizer,
        draw(st.sampled_from(["entries", "any"])),
        tuple(name for name in draft.labels if draw(seldom)),
        draw(st.sampled_from(["error", "allow"])),
        tables,
        lists={
            name: draw(list_layouts(name, array.ndim))
            for name, array in inputs.items()
            if array.ndim and name not in tables and draw(seldom)
        },
    )


def _spoil(draw: st.DrawFn, inputs: dict[str, Array]) -> None:
    """Put NaN or an infinity somewhere into a floating-point array."""
    for array in inputs.values():
        if array.dtype.kind == "f" and array.size:
            array.flat[draw(st.integers(0, array.size - 1))] = draw(st.sampled_from([np.nan, np.inf, -np.inf]))
            return
