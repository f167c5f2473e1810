"""Scalar expressions are equal, and have equal hashes, whatever process made them."""

import os
import pickle
import subprocess
import sys

import pytest

from sparseeinsum.operators.expressions import Call, Literal, Operand

DIFFERENCE = Call("sub", (Operand(0), Call("mul", (Literal(2), Operand(1)))))
WRITE = (
    "import pickle, sys; from sparseeinsum.operators.expressions import *; sys.stdout.buffer.write(pickle.dumps({}))"
)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_an_expression_of_another_process_is_found(seed: str) -> None:
    command = [sys.executable, "-c", WRITE.format(DIFFERENCE)]
    written = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True)
    read = pickle.loads(written.stdout)
    assert read == DIFFERENCE
    assert {DIFFERENCE: "found"}[read] == "found"


def test_expressions_differ_by_the_types_of_their_numbers() -> None:
    one, true = (Call("add", (Operand(0), Literal(number))) for number in (1, True))
    assert one != true
    assert len({one, true, Call("add", (Operand(0), Literal(1)))}) == 2
