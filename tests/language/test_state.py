"""Programs say which tensors a step of a loop replaces, and read the number of the step."""

import pytest

import sparseeinsum as se
from sparseeinsum.errors import ParseError

DESCENT = """
state W, b
loss[] = sum((W[i] * X[i] + b[] - y[i]) ^ 2)
next_W[i] = W[i] - 0.1 / (step + 1) * W[i]
next_b[] = b[] - sum(next_W[i])
"""


def test_state_is_paired_with_its_next_values() -> None:
    program = se.program(DESCENT)
    assert program.state == (("W", "next_W"), ("b", "next_b"))
    assert program.outputs == ("loss", "next_W", "next_b")  # although a statement reads next_W
    assert "step" in program.inputs
    assert se.program(str(program)) == program


def test_linear_algebra_reads_the_step_as_a_number() -> None:
    program = se.program("state W\nnext_W = W - 0.1 / (step + 1) * W")
    assert {operand.tensor: operand.labels for operand in program.einsums[0].operands} == {"W": ("i", "j"), "step": ()}


@pytest.mark.parametrize("text", ["state = A @ B", "Y = step @ A", "state[i] = A[i]", "step[i] = A[i]"])
def test_the_words_are_names_elsewhere(text: str) -> None:
    assert not se.program(text).state


ERRORS = {
    "state W\nY[i] = W[i]": "W is a state, but nothing assigns next_W",
    "state W, W\nnext_W[i] = W[i]": "the state W is declared twice",
    "state W\nW[i] = X[i]\nnext_W[i] = W[i]": "the state W is assigned, too",
    "state W, 3\nnext_W[i] = W[i]": "found '3', expected a name",
    "Y[i] = X[i] * previous.loss": "previous.loss is a value of the step before",
    "Y = X * previous.loss": "previous.loss is a value of the step before",
}


@pytest.mark.parametrize("text", ERRORS)
def test_errors_name_the_state(text: str) -> None:
    with pytest.raises(ParseError, match=ERRORS[text]):
        se.program(text)
