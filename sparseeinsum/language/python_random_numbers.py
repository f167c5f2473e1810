"""Language: random numbers in programs of Python expressions."""

from sparseeinsum.language.python_expressions import ExpressionOperand, TensorExpression, call, index


def uniform(*keys: ExpressionOperand | str) -> TensorExpression:
    """Random numbers of at least 0 and less than 1, as in `uniform(7, "i", "j")`: `uniform(7, i, j)` of program text.

    Args:
        keys: What the numbers depend on: labels, whole numbers, and expressions of them; `index("i", 100)` is a label
            with its bound.
    """
    return _draw("uniform", keys)


def normal(*keys: ExpressionOperand | str) -> TensorExpression:
    """Standard normal random numbers; the keys are those of `uniform`."""
    return _draw("normal", keys)


def bernoulli(probability: ExpressionOperand, *keys: ExpressionOperand | str) -> TensorExpression:
    """Random truth values, true with a probability; the keys are those of `uniform`."""
    return _draw("bernoulli", keys, probability)


def _draw(name: str, keys: tuple[ExpressionOperand | str, ...], *further: ExpressionOperand) -> TensorExpression:
    operands = (index(key) if isinstance(key, str) else key for key in keys)
    return call(name, *further, *operands)
