"""Programs of texts are kept only while the texts mean the same."""

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.errors import ParseError
from sparseeinsum.language.lowered_texts import LoweredTexts
from sparseeinsum.language.matrix_statements import no_shapes
from sparseeinsum.operators.functions import FUNCTIONS


def test_a_text_is_lowered_once() -> None:
    texts = LoweredTexts()
    first = texts.lower("Y[i] = sum(A[i, j] * X[j])", no_shapes)
    assert texts.lower("Y[i] = sum(A[i, j] * X[j])", no_shapes) is first
    assert texts.lower("Y[i] = sum(A[i, j] + X[j])", no_shapes) != first
    texts.clear()
    assert texts.lower("Y[i] = sum(A[i, j] * X[j])", no_shapes) is not first


def test_few_texts_are_kept() -> None:
    texts = LoweredTexts()
    first = texts.lower("Y[i] = X[i]", no_shapes)
    for number in range(20):
        texts.lower(f"Y[i] = X[i] + {number}", no_shapes)
    assert texts.lower("Y[i] = X[i]", no_shapes) is not first


def test_other_functions_are_other_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = LoweredTexts()
    texts.lower("Y[i] = exp(X[i])", no_shapes)
    monkeypatch.delitem(FUNCTIONS, "exp")
    with pytest.raises(ParseError):
        texts.lower("Y[i] = exp(X[i])", no_shapes)


def test_statements_of_linear_algebra_have_the_ranks_of_the_present_tensors() -> None:
    with se.connect() as database:
        for data in (np.arange(6.0).reshape(2, 3), np.arange(3.0)):
            database.tensor("X", data)
            np.testing.assert_array_equal(database.run("Y = 2 * X")["Y"].to_numpy(), 2 * data)
