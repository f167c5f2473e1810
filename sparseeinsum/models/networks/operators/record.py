"""Models: what a record of an operator of ONNX has, and a call of one in a network."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparseeinsum.errors import SemanticsError
from sparseeinsum.models.networks.network_values import NetworkValue
from sparseeinsum.models.networks.writer import Writer
from sparseeinsum.operators.dtypes import Array


@dataclass(frozen=True, slots=True)
class NodeCall:
    """A node of a network, with its inputs.

    Attributes:
        operator: The name of its operator.
        version: The version of the operator's definition, a number of an operator set.
        inputs: Its inputs; None for one that is left out.
        arrays: For each input its array, if it is known without the data; None otherwise.
        attributes: Its attributes, and the defaults of others.
        outputs: The number of its outputs that are needed, from the first to the last that is.
    """

    operator: str
    version: int
    inputs: tuple[NetworkValue | None, ...]
    arrays: tuple[Array | None, ...]
    attributes: Mapping[str, Any]
    outputs: int

    def input(self, position: int) -> NetworkValue:
        """An input that must be there."""
        value = self.inputs[position] if position < len(self.inputs) else None
        if value is None:
            raise SemanticsError(f"input {position} is missing")
        return value

    def has(self, position: int) -> bool:
        """Whether an input is there."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def array(self, position: int, title: str) -> Array:
        """The array of an input that must be known without the data; `title` is for the error."""
        array = self.arrays[position] if position < len(self.arrays) else None
        if array is None:
            raise SemanticsError(f"its {title} depend on the data; a program has fixed shapes")
        return array

    def numbers(self, attribute: str, position: int, title: str) -> list[int] | None:
        """Whole numbers that older definitions have as an attribute and newer ones as an input; None if left out.

        Args:
            attribute: The name of the attribute.
            position: The position of the input.
            title: What errors call it.
        """
        if self.attributes.get(attribute) is not None:
            return [int(number) for number in np.atleast_1d(self.attributes[attribute])]
        if not self.has(position):
            return None
        return [int(number) for number in np.atleast_1d(self.array(position, title))]

    def axis(self, default: int, rank: int) -> int:
        """The attribute `axis`, counted from 0, of an array of that rank."""
        return int(self.attributes.get("axis", default)) % max(rank, 1)

    def refuse(self, attribute: str, *allowed: object) -> None:
        """Refuse a value of an attribute that is not among the allowed ones."""
        value = self.attributes.get(attribute, allowed[0])
        if value not in allowed:
            raise SemanticsError(f"{attribute}={value} is not supported, only {' and '.join(map(str, allowed))}")


Outcome = NetworkValue | Sequence[NetworkValue]


@dataclass(frozen=True, slots=True)
class NetworkOperator:
    """An operator of ONNX.

    Attributes:
        name: Its name.
        write: Writes a call; returns its outputs.
    """

    name: str
    write: Callable[[NodeCall, Writer], Outcome]
