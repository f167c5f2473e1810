"""Join, aggregate and fill decide what absent tuples contribute and which join is exact."""

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.language.binding import bind
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.ranges import ANY_VALUE, Range
from sparseeinsum.semantics.exactness import Absence, Evaluation, JoinKind, ValueFacts, decide_evaluations


def evaluation_of(text: str, *infinite: str, fill: float = 0.0, allows_nonfinite: bool = False) -> Evaluation:
    """The exact evaluation of the last statement over vectors and matrices; `infinite` inputs may be nonfinite."""
    program = se.program(text)
    ranks = {operand.tensor: len(operand.labels) for einsum in program.einsums for operand in einsum.operands}
    inputs = {
        name: Tensor(name, tuple(Axis(f"dim_{axis}", 3) for axis in range(ranks[name])), fill=fill)
        for name in program.inputs
    }
    facts = {name: ValueFacts(ANY_VALUE if name in infinite else Range(-9, 9), has_fill=True) for name in inputs}
    decisions = decide_evaluations(bind(program, inputs), facts, allows_nonfinite)
    return decisions.evaluations[program.einsums[-1].output.tensor]


@pytest.mark.parametrize(
    ("text", "matters", "constant", "is_ignored"),
    [
        # Only matches count.
        ("W[i, k] = sum(U[i, j] * V[j, k])", (False, False), 0, True),
        ("W[i, j] = U[i, j] * V[i, j]", (False, False), 0, True),
        ("W[i, j] = U[i] * V[j]", (False, False), 0, True),
        ("W[i, j] = 2 * U[i, j] * V[i, j] / 3", (False, False), 0, True),
        ("W[i, j] = relu(U[i, j]) * tanh(V[i, j])", (False, False), 0, True),
        ("W[i, j] = abs(U[i, j]) ^ 2 * V[i, j]", (False, False), 0, True),
        ("W[i, j] = sqrt(U[i, j] * V[i, j])", (False, False), 0, True),
        ("W[i, j] = U[i, j] * (V[i, j] + 1)", (False, True), 0, True),
        # Absent entries have one value, which is the fill of the result.
        ("W[i] = sum(U[i, j])", (False,), 0, True),
        ("W[i, j] = relu(U[i, j])", (False,), 0, True),
        ("W[i, j] = sqrt(abs(U[i, j])) / 4", (False,), 0, True),
        ("W[i, j] = exp(U[i, j])", (False,), 1, True),
        ("W[i, j] = sigmoid(U[i, j])", (False,), 0.5, True),
        ("W[i, j] = 2 * U[i, j] + 1", (False,), 1, True),
        ("W[i, j] = U[i, j] ^ 0", (False,), 1, True),
        ("W[i, j] = U[i, j] * V[i, j] + 1", (False, False), 1, True),
        # Absent entries have one value, which the aggregate must include.
        ("W[i] = sum(exp(U[i, j]))", (False,), 1, False),
        ("W[i] = max(U[i, j])", (False,), 0, False),
        ("W[i] = min(U[i, j])", (False,), 0, False),
        ("W[i] = prod(U[i, j])", (False,), 0, False),
        ("W[i] = logsumexp(U[i, j])", (False,), 0, False),
        ("W[i, k] = max(U[i, j] * V[j, k])", (False, False), 0, False),
        ("W[i] = any(U[i, j])", (False,), 0, True),
        ("W[i] = all(U[i, j])", (False,), 0, False),
        # Absent entries have no single value.
        ("W[i, j] = log(U[i, j])", (True,), None, True),
        ("W[i, j] = U[i, j] / 0", (True,), None, True),
        ("W[i, j] = U[i, j] / V[i, j]", (True, True), None, True),
        # An absent operand counts where the other is present.
        ("W[i, j] = U[i, j] + V[i, j]", (True, True), 0, True),
        ("W[i, j] = U[i, j] - V[i, j]", (True, True), 0, True),
        ("L[] = sum((U[i, j] - V[i, j]) ^ 2)", (True, True), 0, True),
        ("W[i, j] = max(U[i, j], V[i, j])", (True, True), 0, True),
        ("W[i, j] = U[i, j] * exp(V[i, j])", (False, True), 0, True),
        ("W[i, j] = U[i, j] ^ V[i, j]", (True, False), 1, True),
        ("W[i, j] = exp(U[i, j]) + V[i, j]", (True, True), 1, True),
        ("W[i] = sum(exp(U[i, j]) + V[i, j])", (True, True), 1, False),
        # A condition decides.
        ("W[i, j] = where(U[i, j] == 0, 0, V[i, j])", (False, False), 0, True),
        ("W[i, j] = where(U[i, j] > 20, V[i, j], 3)", (False, False), 3.0, True),
        ("W[i, j] = U[i, j] != 0 and V[i, j] != 0", (False, False), False, True),
        ("W[i, j] = U[i, j] == V[i, j]", (True, True), True, True),
    ],
)
def test_contributions_of_absent_tuples(
    text: str, matters: tuple[bool, ...], constant: float | None, is_ignored: bool
) -> None:
    evaluation = evaluation_of(text)
    assert evaluation.matters == matters
    assert (evaluation.constant, evaluation.ignores_constant) == (constant, is_ignored)
    assert evaluation.joint_absence_matters == (constant is None)


@pytest.mark.parametrize(
    ("text", "fill", "matters", "is_ignored"),
    [
        ("W[i, k] = min(U[i, j] + V[j, k])", np.inf, (False, False), True),
        ("W[i, k] = max(U[i, j] + V[j, k])", -np.inf, (False, False), True),
        ("W[i, k] = logsumexp(U[i, j] + V[j, k])", -np.inf, (False, False), True),
        ("W[i, k] = max(min(U[i, j], V[j, k]))", -np.inf, (False, False), True),
        ("W[i, k] = min(max(U[i, j], V[j, k]))", np.inf, (False, False), True),
        ("W[i, k] = prod(U[i, j] ^ V[j, k])", 1.0, (False, True), True),
        ("W[i, k] = sum(U[i, j] * V[j, k])", 1.0, (True, True), False),
        ("W[i, k] = min(U[i, j] + V[j, k])", -np.inf, (False, False), False),
    ],
)
def test_semirings(text: str, fill: float, matters: tuple[bool, ...], is_ignored: bool) -> None:
    evaluation = evaluation_of(text, fill=fill)
    assert (evaluation.matters, evaluation.ignores_constant) == (matters, is_ignored)


@pytest.mark.parametrize(
    ("text", "infinite", "matters"),
    [
        ("W[i, j] = U[i, j] * V[i, j]", "U", (False, True)),
        ("W[i, j] = U[i, j] * V[i, j]", "V", (True, False)),
        ("W[i, j] = U[i, j] * V[i, j]", "UV", (True, True)),
        ("W[i] = sum(U[i, j])", "U", (False,)),
        # Functions of finite values may be infinite, which counts beside zeros of the next EinSum.
        ("T[i, j] = exp(99 * U[i, j])\nW[i, j] = T[i, j] * V[i, j]", "", (True, True)),
        ("T[i, j] = exp(U[i, j])\nW[i, j] = T[i, j] * V[i, j]", "", (True, False)),
        ("T[i, j] = U[i, j] / 2\nW[i, j] = T[i, j] * V[i, j]", "", (False, False)),
        ("T[i, j] = U[i, j] / V[i, j]\nW[i, j] = T[i, j] * V[i, j]", "", (False, True)),
        ("T[i, j] = sigmoid(U[i, j])\nW[i, j] = T[i, j] * V[i, j]", "U", (True, True)),
        ("T[i] = sum(U[i, j])\nW[i] = T[i] * V[i]", "", (False, False)),
    ],
)
def test_zero_does_not_cancel_infinity(text: str, infinite: str, matters: tuple[bool, ...]) -> None:
    assert evaluation_of(text, *infinite, allows_nonfinite=True).matters == matters


INNER = Absence(JoinKind.INNER, (False, False))
FULL, LEFT, RIGHT = (Absence(kind, (False, False)) for kind in (JoinKind.FULL, JoinKind.LEFT, JoinKind.RIGHT))


@pytest.mark.parametrize(
    ("text", "keys", "absence"),
    [
        ("W[i, j] = U[i, j] * V[i, j]", ("ij", "ij"), INNER),
        ("W[i, j] = U[i, j] * V[i, j]", ("i", "j"), INNER),
        # Every tuple has at most one partner: an outer join fills it in.
        ("W[i, j] = U[i, j] + V[i, j]", ("ij", "ij"), FULL),
        ("W[i, j] = U[i, j] + V[i, j]", ("i", "i"), FULL),
        ("W[i, j] = U[i, j] * (V[j] + 1)", ("ij", "j"), LEFT),
        ("W[i, j] = (U[i] + 1) * V[i, j]", ("i", "ij"), RIGHT),
        # A tuple may lack several partners: they are filled in.
        ("W[i, j] = U[i, j] + V[j]", ("ij", "j"), Absence(JoinKind.INNER, (True, True))),
        ("W[i, j] = U[i, j] + V[i, j]", ("", ""), Absence(JoinKind.INNER, (True, True))),
        ("W[i, j] = U[i] * (V[j] + 1)", ("i", "j"), Absence(JoinKind.INNER, (False, True))),
        ("W[i, j] = U[i, j] / V[i, j]", ("ij", "ij"), Absence(JoinKind.INNER, (True, True))),
        ("W[i] = max(U[i, j] * V[i, j])", ("ij", "ij"), INNER),
    ],
)
def test_cheapest_exact_join(text: str, keys: tuple[str, str], absence: Absence) -> None:
    left, right = map(frozenset, keys)
    assert evaluation_of(text).absence_options((left, right))[0] == absence
