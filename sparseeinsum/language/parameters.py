"""Language: the parameters of a program: numbers that it declares, and values that callers give them."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from sparseeinsum.errors import ParseError, SemanticsError
from sparseeinsum.language.syntax import Position, SourceText
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.presentation.spelling import nearest

NO_PARAMETERS: Mapping[str, object] = MappingProxyType({})


class Parameters:
    """The parameters that a program has declared so far, and their values.

    Attributes:
        declared: The places of the declarations, by name.
        read: The names that the program has read so far, parameters or not.
    """

    def __init__(
        self,
        values: Mapping[str, object] = NO_PARAMETERS,
        stand_in: Number | None = None,
        outer: Mapping[str, Number] = MappingProxyType({}),
    ) -> None:
        """Create the parameters before the program is read.

        Args:
            values: Values that callers give to parameters, by name.
            stand_in: The value of parameters that have neither a given value nor a default; None refuses them.
            outer: Parameters from outside, which the program may read or declare again.
        """
        self.declared: dict[str, Position] = {}
        self.read: set[str] = set()
        self._given = {name: _number(name, value) for name, value in values.items()}
        self._stand_in = stand_in
        self._values = dict(outer)

    def declare(self, name: str, default: Number | None, at: Position, source: SourceText) -> None:
        """Add a declaration.

        Raises:
            ParseError: The name is declared already, or the parameter has no value.
        """
        for declared in self.declared:
            if declared.lower() == name.lower():
                raise at.error(f"the parameter {declared} is declared already; declare a parameter once", source)
        self.declared[name] = at
        value = _like(default, self._given[name], name) if name in self._given else default
        if value is None and self._stand_in is None:
            hint = f"give it one here, as in param {name} = 0.1, or where the program is read or run"
            raise at.error(f"the parameter {name} has no value; {hint}", source)
        self._values[name] = self._stand_in if value is None else value  # type: ignore[assignment]  # one of them is not None

    def value(self, name: str) -> Number | None:
        """The value of the parameter `name`; None if there is no such parameter."""
        self.read.add(name)
        return self._values.get(name)

    def whole_number(self, name: str, at: Position, source: SourceText) -> int:
        """The value of a parameter where only a whole number of 0 or more is allowed, such as a bound.

        Raises:
            ParseError: There is no such parameter, or it has another value.
        """
        value = self.value(name)
        if value is None:
            raise self._unknown(name, at, source)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise at.error(f"the parameter {name} is {value}, but it must be a whole number here, 0 or more", source)
        return value

    def _unknown(self, name: str, at: Position, source: SourceText) -> ParseError:
        suggestion = nearest(name, self.declared)
        hint = f"did you mean {suggestion}?" if suggestion else f"declare it before, as in param {name} = 16"
        return at.error(f"there is no parameter {name}; {hint}", source)

    @property
    def values(self) -> Mapping[str, Number]:
        """The values of all parameters declared so far, and of those from outside."""
        return self._values

    def check_given(self) -> None:
        """Refuse values for parameters that the program does not declare.

        Raises:
            SemanticsError: A parameter is not declared; the message lists those that are.
        """
        for name in self._given:
            if name not in self.declared:
                declared = f"it has {', '.join(self.declared)}" if self.declared else "it declares none"
                raise SemanticsError(f"the program has no parameter {name}; {declared}")


def _number(name: str, value: object) -> Number:
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, bool | int | float | complex):
        raise SemanticsError(f"the parameter {name} cannot be {value!r}, which is not a number")
    if value != value:
        raise SemanticsError(f"the parameter {name} cannot be NaN, because program text has no literal for it")
    return value


def _like(default: Number | None, value: Number, name: str) -> Number:
    """The value, converted to the type of the default, so that the dtypes of results do not depend on it."""
    if isinstance(default, bool) != isinstance(value, bool) and default is not None:
        kind = "a truth value" if isinstance(default, bool) else "a number"
        raise SemanticsError(f"the parameter {name} is {kind}, so it cannot be {value}")
    if isinstance(default, float) and isinstance(value, int):
        return float(value)
    return complex(value) if isinstance(default, complex) else value
