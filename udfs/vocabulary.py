"""Vocabularies of scalar expressions: the functions and operators that expression.py reads.

Needs numpy only.
"""

from collections import namedtuple

import numpy as np

# Fields: the names of functions in the order of their codes, joined by |, and the number of operands of each; the
# symbols of the first of them, which are operators, joined by |, and their precedences; the codes of three operators.
Vocabulary = namedtuple("Vocabulary", "names operands symbols precedences inversion negation power")


def vocabulary_of(functions, symbols):
    """Make the vocabulary of some functions, among them `not`, `neg` and `pow`.

    Args:
        functions: (name, operands) of each function, in the order of their codes.
        symbols: (symbol, precedence) of each operator; the operators are the first functions.
    """
    names = [name for name, _ in functions]
    return Vocabulary(
        _join(names),
        np.array([operands for _, operands in functions]),
        _join([symbol for symbol, _ in symbols]),
        np.array([precedence for _, precedence in symbols]),
        names.index("not"),
        names.index("neg"),
        names.index("pow"),
    )


def _join(names):
    return np.frombuffer("|".join(names).encode(), dtype=np.uint8)
