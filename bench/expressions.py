"""Scalar expressions inside kernels: interpreted block by block, beside each compiled to a loop of its own.

The time of a compiled expression is measured with a user's function that computes the same: kernels call its machine
code, a loop over blocks, wherever the expression names it. Compiling one takes some 0.3 s, which is not included.
"""

import argparse
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import sparseeinsum as se
from bench.timing import Figure, race, report
from sparseeinsum.kernels.user_function_table import compile_function

_ROWS, _ELEMENTS = 2000, 1000
_EXPRESSIONS: dict[str, Callable[..., float]] = {
    "u": lambda u: u,
    "(2 * u + 1) * u - 0.5": lambda u: (2 * u + 1) * u - 0.5,
    "where(u > 1, u - 1, 2 * u) / 3": lambda u: (u - 1 if u > 1 else 2 * u) / 3,
    "sigmoid(u) * exp(-u)": lambda u: 1 / (1 + math.exp(-u)) * math.exp(-u),
    "(u - v) ^ 2": lambda u, v: (u - v) ** 2,
    "max(u - v, 0) * 2 + min(u, v) * (u + v) / 3 - abs(u * v - 1)": lambda u, v: (
        max(u - v, 0.0) * 2 + min(u, v) * (u + v) / 3 - abs(u * v - 1)
    ),
}


def _sum(connection: Any, expression: str, operands: str) -> object:  # noqa: ANN401  # of DuckDB
    spec = "i->" if operands == "u" else "i,i->"
    reduced = f"tensor_reduce('sum', '{expression}', '{spec}', {operands}, [{_ELEMENTS}])[1]"
    return connection.execute(f"SELECT sum({reduced}) FROM t").fetchall()


def measure(repeat: int) -> list[Figure]:
    """Both ways for each expression, summed over arrays, on one thread."""
    connection = se.connect().connection
    connection.execute("SET threads = 1")
    numbers = f"list_transform(range({_ELEMENTS}), lambda x: 2 * random())"
    connection.execute(f"CREATE TABLE t AS SELECT {numbers} AS u, {numbers} AS v FROM range({_ROWS}) AS r(i)")
    figures = []
    for number, (text, function) in enumerate(_EXPRESSIONS.items()):
        name = f"compiled_{number}"
        operands = ("u", "u, v")[compile_function(name, function) - 1]

        contenders = {
            "interpreted": partial(_sum, connection, text, operands),
            "compiled": partial(_sum, connection, f"{name}({operands})", operands),
        }
        figures += race(text, contenders, dict.fromkeys(contenders, repeat), "interpreted", pause=0)
    return figures


def main() -> None:
    """Print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder of the figures, as JSON")
    asked = parser.parse_args()
    title = f"Sums of expressions of {_ROWS:,} arrays of {_ELEMENTS:,} float64, one thread"
    report(title, measure(asked.repeat), "interpreted", asked.output / "expressions.json")


if __name__ == "__main__":
    main()
