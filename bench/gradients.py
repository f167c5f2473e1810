"""Gradients of random programs, and products of Hessians and vectors, compared with those of torch.autograd.

    python -m bench.gradients [--programs 2000] [--second 300] [--seed 0]

A program is one of tests/generators/random_programs.py, on real numbers; its loss is the sum of its last result times
random weights. torch computes the same EinSums on dense tensors. Counted are: equal; refused, because the program has
no derivative by its first input; NaN in torch alone, where it multiplies 0 by an infinite derivative, and equal
elsewhere; infinite losses;
different; and left out, if the last result has no numbers of floating point.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
from hypothesis import strategies as st

import sparseeinsum as se
from bench.timing import CONSOLE
from sparseeinsum.language.eingraph import SELECT, EinSum
from sparseeinsum.language.generated import with_axis_bounds
from sparseeinsum.language.inference import with_bounds
from sparseeinsum.language.scalar import evaluated_dtype
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.scans import SCANS
from sparseeinsum.semantics.dense import evaluate_program

sys.path += [str(Path(__file__).parents[1] / "tests" / folder) for folder in ("generators", "databases")]
from random_programs import cases  # from the path above

MEASURED = Path(__file__).parent / "measured" / "gradients.json"
TOLERANCE = 1e-7  # relative to the greatest value


class TorchPrograms:
    """Computes programs with torch, an independent definition of their derivatives.

    Args:
        torch: The module.
    """

    def __init__(self, torch: Any) -> None:  # noqa: ANN401  # a module that the project does not require
        self.torch = torch
        named: tuple[str, ...] = (
            "exp",
            "log",
            "sqrt",
            "sign",
            "sigmoid",
            "tanh",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
        )
        named = (*named, "cosh", "erf", "abs", "floor", "ceil", "round", "relu", "logaddexp")
        self._functions = {name: getattr(torch, name) for name in named}
        self._functions |= {name: getattr(torch, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")}
        self._functions |= {
            "or": lambda a, b: torch.logical_or(a != 0, b != 0),
            "and": lambda a, b: torch.logical_and(a != 0, b != 0),
            "not": lambda a: a == 0,
            "add": torch.add,
            "sub": torch.sub,
            "mul": torch.mul,
            "div": torch.div,
            "neg": torch.neg,
            "pow": torch.pow,
            "mod": torch.remainder,
            "normal_quantile": torch.special.ndtri,
            "min": torch.minimum,
            "max": torch.maximum,
            "where": lambda a, b, c: torch.where(a != 0, b, c),
            # As torch.clamp between numbers; between tensors, it shares the derivative at its ends.
            "clip": lambda a, b, c: torch.where((a >= b) & (a <= c), a, torch.minimum(torch.maximum(a, b), c)),
        }
        self._aggregates = {
            "sum": lambda x: x.sum(-1),
            "prod": lambda x: x.prod(-1),
            "max": lambda x: x.amax(-1),
            "min": lambda x: x.amin(-1),
            "any": lambda x: (x != 0).any(-1).double(),
            "all": lambda x: (x != 0).all(-1).double(),
            "logsumexp": lambda x: torch.logsumexp(x, -1),
        }
        self._scans = {
            "cumsum": lambda x: x.cumsum(-1),
            "cumprod": lambda x: x.cumprod(-1),
            "cummax": lambda x: self._of_parts(x, self.torch.amax),  # equal maxima share, as those of aggregates
            "cummin": lambda x: self._of_parts(x, self.torch.amin),
            "logcumsumexp": lambda x: self._of_parts(x, self.torch.logsumexp),  # logcumsumexp rounds more at 1e12
        }

    def results(self, program: se.Program, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """All tensors of a program, of float64; truth values are 0 and 1."""
        tensors = dict(inputs)
        arrays = evaluate_program(program, {name: tensor.detach().numpy() for name, tensor in inputs.items()})
        dtypes = {name: array.dtype.name for name, array in arrays.items()}
        for einsum in program.einsums:
            shapes = {name: _tensor_of(name, tensor.shape) for name, tensor in tensors.items()}
            for generated in program.generated:
                if all(bound.tensor in tensors for bound in generated.bounding_axes()):
                    array = generated.array(generated.tensor(shapes))
                    dtypes[generated.name] = array.dtype.name
                    tensors[generated.name] = self.torch.tensor(array.astype(float))
            tensors[einsum.output.tensor] = self._computed(einsum, tensors, [dtypes[r.tensor] for r in einsum.operands])
        return tensors

    def _computed(self, einsum: EinSum, tensors: Mapping[str, Any], dtypes: list[str]) -> Any:  # noqa: ANN401  # of torch
        bounds: dict[str, int] = {}
        for operand in einsum.operands:
            bounds |= dict(zip(operand.labels, tensors[operand.tensor].shape, strict=True))
        shapes = {name: _tensor_of(name, tensor.shape) for name, tensor in tensors.items()}
        join = with_bounds(with_axis_bounds(einsum.join, shapes), bounds)
        operands = [self._broadcast(tensors[r.tensor], r.labels, einsum.labels, bounds) for r in einsum.operands]
        shape = [bounds[label] for label in einsum.labels]
        kept = shape[: len(einsum.output.labels)]
        values = self._evaluated(join, operands, dtypes).expand(shape)
        if einsum.along is not None:
            return self._along(einsum, values)
        if not einsum.aggregated:
            return values
        flat = values.reshape(*kept, int(np.prod(shape[len(kept) :])))
        return self._aggregates["sum" if einsum.aggregate == SELECT else str(einsum.aggregate)](flat)

    def _along(self, einsum: EinSum, values: Any) -> Any:  # noqa: ANN401  # tensors of torch
        axis = einsum.labels.index(str(einsum.along))
        name = str(einsum.aggregate)
        if name in PICKS:
            return values.select(axis, PICKS[name].position)
        assert name in SCANS
        return self._scans[name](values.movedim(axis, -1)).movedim(-1, axis)

    def _of_parts(self, values: Any, aggregate: Any) -> Any:  # noqa: ANN401  # tensors and a function of torch
        parts = [aggregate(values[..., : end + 1], -1) for end in range(values.shape[-1])]
        return self.torch.stack(parts, -1)

    def _broadcast(self, tensor: Any, own: tuple[str, ...], labels: tuple[str, ...], bounds: dict[str, int]) -> Any:  # noqa: ANN401
        grids = [
            self.torch.arange(bounds[label]).reshape([-1 if other == label else 1 for other in labels]) for label in own
        ]
        return tensor[tuple(grids)] if grids else tensor

    def _evaluated(self, expression: Scalar, operands: list[Any], dtypes: list[str]) -> Any:  # noqa: ANN401  # of torch
        match expression:
            case Operand(index):
                return operands[index]
            case Literal(value):
                return self.torch.tensor(float(value.real))
            case Call(name, arguments):
                values = [self._evaluated(argument, operands, dtypes) for argument in arguments]
                result = self._functions[name](*self.torch.broadcast_tensors(*values))
                is_truth = evaluated_dtype(expression, dtypes) == "bool"  # true + true is true, and so is not 2
                return (result != 0 if is_truth else result).double()
        raise AssertionError(f"{expression} has no value")


def _tensor_of(name: str, shape: tuple[int, ...]) -> Tensor:
    return Tensor(name, tuple(Axis(f"axis_{axis}", bound) for axis, bound in enumerate(shape)))


def compared(torch: Any, text: str, inputs: Mapping[str, np.ndarray[Any, Any]], is_second: bool) -> str:  # noqa: ANN401
    """What the comparison of one program gives, in a word.

    Args:
        torch: The module.
        text: The program, whose scalar result is loss.
        inputs: Its inputs; X is differentiated.
        is_second: Whether the Hessian times V is compared, too.
    """
    program = se.program(text)
    leaves = {name: torch.tensor(array, requires_grad=name == "A") for name, array in inputs.items()}
    loss = TorchPrograms(torch).results(program, leaves)["loss"]
    if not torch.isfinite(loss):
        return "infinite loss"
    try:
        derivative = se.gradient(program, of="loss", by="A")
        if is_second:
            derivative = se.jvp(derivative, of={"d_A": "second"}, by={"A": "V"})
    except se.SemanticsError:
        return "refused"
    ours = evaluate_program(derivative, inputs)["second" if is_second else "d_A"]
    (first,) = torch.autograd.grad(loss, leaves["A"], create_graph=is_second, allow_unused=True)
    theirs = first
    if is_second and first is not None:
        slope = (first * leaves["V"]).sum()
        theirs = None
        if slope.requires_grad:
            (theirs,) = torch.autograd.grad(slope, leaves["A"], allow_unused=True)
    expected = np.zeros(ours.shape) if theirs is None else theirs.detach().numpy()
    is_unknown = np.isnan(expected) & ~np.isnan(ours)
    expected = np.where(is_unknown, ours, expected)
    is_close = np.allclose(
        ours,
        expected,
        rtol=TOLERANCE,
        atol=TOLERANCE * max(1, np.max(abs(expected[np.isfinite(expected)]), initial=0)),
        equal_nan=True,
    )
    if not is_close:
        return "different"
    return "NaN in torch alone" if is_unknown.any() else "equal"


def run(torch: Any, programs: int, seed: int, is_second: bool, shown: int) -> Counter[str]:  # noqa: ANN401
    """Compare random programs; prints the first `shown` that differ."""
    counts: Counter[str] = Counter()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=programs,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(cases("float64", "dp"), st.integers(0, 2**31))
    def each(case: Any, weights: int) -> None:  # noqa: ANN401  # a Case
        text, inputs = with_loss(case, np.random.default_rng(weights))
        if text is None:
            counts["left out"] += 1
            return
        word = compared(torch, text, inputs, is_second)
        counts[word] += 1
        if word == "different" and counts[word] <= shown:
            CONSOLE.print(f"{word}:\n{text}\n{inputs}", markup=False)

    each()
    return counts


def with_loss(case: Any, rng: np.random.Generator) -> tuple[str | None, dict[str, np.ndarray[Any, Any]]]:  # noqa: ANN401
    """A random program with a loss, and its inputs; none if its last result has no numbers of floating point."""
    inputs = {name: np.where(np.isfinite(array), array, 0.7) for name, array in case.inputs.items()}
    program = se.program(case.text)
    last = program.einsums[-1].output
    tensors = evaluate_program(program, inputs)
    values = tensors[last.tensor]
    has_entries = all(array.size for array in tensors.values())
    if values.dtype != np.float64 or "A" not in program.inputs or not has_entries:
        return None, {}
    labels = ", ".join(last.labels)
    inputs |= {"Weights": rng.uniform(-1, 1, values.shape), "V": rng.uniform(-1, 1, inputs["A"].shape)}
    product = f"{last.tensor}[{labels}] * Weights[{labels}]"
    return f"{case.text}\nloss[] = {f'sum({product})' if labels else product}", inputs


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--second", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shown", type=int, default=3)
    asked = parser.parse_args()
    import torch

    torch.set_default_dtype(torch.float64)
    figures = {
        "gradients": dict(run(torch, asked.programs, asked.seed, False, asked.shown)),
        "Hessians times vectors": dict(run(torch, asked.second, asked.seed + 1, True, asked.shown)),
    }
    CONSOLE.print(figures)
    MEASURED.write_text(json.dumps({"torch": torch.__version__, "seed": asked.seed, **figures}, indent=2) + "\n")
