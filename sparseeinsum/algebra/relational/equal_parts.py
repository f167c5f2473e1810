"""Algebra, relational: which parts of the keys of a relation are equal in all its tuples.

A relation says for every part of its keys which is the first part that equals it: <0, 1, 0> if parts 0 and 2 are equal.
"""

from collections.abc import Iterable, Iterator, Sequence

from sparseeinsum.algebra.relational.keys import Key, KeyExpression, KeyPart, Operation, substitute


def distinct_parts(arity: int) -> Key:
    """Each part equals itself alone."""
    return tuple(range(arity))


def with_equal(first_equal: Key, pairs: Iterable[tuple[int, int]]) -> Key:
    """The same, if the parts of each pair are equal, too.

    >>> with_equal((0, 1, 2, 3), [(3, 1)])
    (0, 1, 2, 1)
    """
    for pair in pairs:
        low, high = sorted(first_equal[position] for position in pair)
        first_equal = tuple(low if first == high else first for first in first_equal)
    return first_equal


def equal_in_both(first: Key, second: Key) -> Key:
    """The parts that are equal in two relations with keys of the same arity."""
    classes = list(zip(first, second, strict=True))
    return tuple(map(classes.index, classes))


def equalities_in(condition: KeyExpression) -> Iterator[tuple[int, int]]:
    """The pairs of parts that a condition requires to be equal."""
    match condition:
        case Operation("==", KeyPart(left), KeyPart(right)):
            yield left, right
        case Operation("&", left, right):
            yield from equalities_in(left)
            yield from equalities_in(right)


def equal_after(first_equal: Key, parts: Sequence[KeyExpression]) -> Key:
    """The equal parts of keys that are computed from others: those with the same expression.

    >>> equal_after((0, 0), (KeyPart(1), KeyPart(0)))
    (0, 0)
    """
    representatives = tuple(map(KeyPart, first_equal))
    expressions = [substitute(part, representatives) for part in parts]
    return tuple(map(expressions.index, expressions))
