"""Language: the parameters of a program: numbers that it declares, or that are given where it is read."""

import difflib
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from sparseeinsum.errors import ParseError, SemanticsError
from sparseeinsum.language.syntax import Position, Source
from sparseeinsum.operators.dtypes import Number

NO_PARAMETERS: Mapping[str, object] = MappingProxyType({})


class Parameters:
    """The parameters that a text has declared so far, and what they are.

    Attributes:
        declared: Where each is declared.
        read: Those that the text has read.
    """

    def __init__(
        self,
        given: Mapping[str, object] = NO_PARAMETERS,
        stand_in: Number | None = None,
        outer: Mapping[str, Number] = MappingProxyType({}),
    ) -> None:
        """What there is besides the text.

        Args:
            given: Values of those that it declares.
            stand_in: Value of those that it declares without one, and that are not given.
            outer: Those that it may read, or declare anew.
        """
        self.declared: dict[str, Position] = {}
        self.read: set[str] = set()
        self._given = {name: _number(name, value) for name, value in given.items()}
        self._stand_in = stand_in
        self._values = dict(outer)

    def declare(self, name: str, default: Number | None, at: Position, source: Source) -> None:
        """Take up a declaration.

        Raises:
            ParseError: It is the second of its name, or nothing says the value.
        """
        for known in self.declared:
            if known.lower() == name.lower():
                raise at.error(f"the parameter {known} is declared already; declare a parameter once", source)
        self.declared[name] = at
        value = _like(default, self._given[name], name) if name in self._given else default
        if value is None and self._stand_in is None:
            hint = f"give it one here, as in param {name} = 0.1, or where the program is read or run"
            raise at.error(f"the parameter {name} has no value; {hint}", source)
        self._values[name] = self._stand_in if value is None else value  # type: ignore[assignment]  # one is there

    def value(self, name: str) -> Number | None:
        """What a parameter is; None where there is none of that name."""
        self.read.add(name)
        return self._values.get(name)

    def whole_number(self, name: str, at: Position, source: Source) -> int:
        """What a parameter is that stands where only a whole number makes sense.

        Raises:
            ParseError: There is none of that name, or it is another number.
        """
        value = self.value(name)
        if value is None:
            raise self.unknown(name, at, source)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise at.error(f"the parameter {name} is {value}, but a whole number must stand here, 0 or more", source)
        return value

    def unknown(self, name: str, at: Position, source: Source) -> ParseError:
        """What is wrong with a name that is none of a parameter."""
        near = difflib.get_close_matches(name.lower(), [known.lower() for known in self.declared], n=1)
        meant = next((known for known in self.declared if known.lower() in near), None)
        hint = f"did you mean {meant}?" if meant else f"declare it before, as in param {name} = 16"
        return at.error(f"there is no parameter {name}; {hint}", source)

    @property
    def values(self) -> Mapping[str, Number]:
        """All parameters by now."""
        return self._values

    def check_given(self) -> None:
        """Refuse what is given to parameters that there are not.

        Raises:
            SemanticsError: Naming one, and those that there are.
        """
        for name in self._given:
            if name not in self.declared:
                known = f"it has {', '.join(self.declared)}" if self.declared else "it declares none"
                raise SemanticsError(f"the program has no parameter {name}; {known}")


def _number(name: str, given: object) -> Number:
    value = given.item() if isinstance(given, np.generic) else given
    if not isinstance(value, bool | int | float | complex):
        raise SemanticsError(f"the parameter {name} is given {given!r}, which is no number")
    if value != value:
        raise SemanticsError(f"the parameter {name} is given NaN, which programs have no word for")
    return value


def _like(default: Number | None, value: Number, name: str) -> Number:
    """A value of the kind of the default, so that another value makes no result of another dtype."""
    if isinstance(default, bool) != isinstance(value, bool) and default is not None:
        kind = "a truth value" if isinstance(default, bool) else "a number"
        raise SemanticsError(f"the parameter {name} is {kind}, so it cannot be {value}")
    if isinstance(default, float) and isinstance(value, int):
        return float(value)
    return complex(value) if isinstance(default, complex) else value
