"""Algebra: the arguments of operators that users write by hand, checked."""

import numbers
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from sparseeinsum.algebra.relational.relational_expressions import inputs_of
from sparseeinsum.errors import AlgebraError
from sparseeinsum.operators.dtypes import Number

Method = TypeVar("Method", bound=Callable[..., Any])


def names_operator(method: Method) -> Method:
    """A decorator of a method that makes an operator: errors say which operator it is, and which tensors it reads."""

    @wraps(method)
    def named(relation: Any, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401  # as the method's
        try:
            return method(relation, *arguments, **options)
        except AlgebraError as error:
            names = ", ".join(inputs_of([relation.expression]))
            raise AlgebraError(f"{method.__name__} of {names}: {error}") from error

    return cast(Method, named)


def whole_number(name: str, value: object) -> int:
    """An argument that must be a whole number.

    Raises:
        AlgebraError: It is none.
    """
    try:
        return operator.index(cast(int, value))
    except TypeError:
        raise AlgebraError(f"{name} is {value!r}; give a whole number") from None


def key_positions(name: str, values: Sequence[int]) -> tuple[int, ...]:
    """An argument that must be positions in a key.

    Args:
        name: What errors call the argument.
        values: The positions, counted from 0.

    Raises:
        AlgebraError: It is something else.
    """
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise AlgebraError(f"{name} is {values!r}; give positions in the key, as in [0, 2], or [] for none")
    return tuple(whole_number(f"a position in {name}", value) for value in values)


def joined_positions(pairs: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The positions of the joined parts in the left key and in the right key, from pairs of both.

    Raises:
        AlgebraError: The argument is something else.
    """
    are_pairs = isinstance(pairs, Iterable) and all(isinstance(pair, Sequence) and len(pair) == 2 for pair in pairs)
    if not are_pairs or isinstance(pairs, str):
        raise AlgebraError(f"on is {pairs!r}; give pairs of positions in the left and the right key, as in [(1, 0)]")
    left, right = (key_positions("on", [pair[side] for pair in pairs]) for side in (0, 1))
    return left, right


def number_or_none(name: str, value: Number | None) -> Number | None:
    """An argument that must be a number or None.

    Raises:
        AlgebraError: It is neither.
    """
    if value is not None and not isinstance(value, numbers.Number):
        raise AlgebraError(f"{name} is {value!r}; give a number, or None for none")
    return value


def relations_by_name(relations: Mapping[str, Any]) -> Mapping[str, Any]:
    """Relations to compute with: for every tensor by name, a dict of arrays by key.

    Raises:
        AlgebraError: They are something else.
    """
    example = "as in {'A': {(0, 0): array, (0, 1): array}}"
    if not isinstance(relations, Mapping):
        raise AlgebraError(f"relations are a dict by name, {example}, and not {type(relations).__name__}")
    for name, relation in relations.items():
        if not isinstance(relation, Mapping) or not all(isinstance(key, tuple) for key in relation):
            raise AlgebraError(f"the relation {name} must be a dict of arrays by tuples of whole numbers, {example}")
    return relations
