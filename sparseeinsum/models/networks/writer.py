"""Models: writes the statements of a network, and collects the tensors that they read."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.unused_names import unused_name
from sparseeinsum.models.networks.boolean_selections import BooleanSelection, content_of
from sparseeinsum.models.networks.index_terms import (
    ConstantTerm,
    FormulaTerm,
    IndexTerm,
    Ones,
    Read,
    labels_of,
    plain,
    tensors_of,
)
from sparseeinsum.models.networks.network_statements import NetworkStatement, StatementAggregate, write_statement
from sparseeinsum.models.networks.network_values import (
    FactoredAxis,
    NetworkValue,
    SizedLabel,
    new_axis,
)
from sparseeinsum.operators.dtypes import Array

_LARGEST_GROWTH = 4  # of a weight that is stored in the layout in which a statement reads it


@dataclass
class Writer:
    """Writes statements.

    Attributes:
        statements: The statements so far.
        tensors: The arrays and selections that statements may read, by name.
        title: What the next statements compute; names of tensors begin with it.
    """

    statements: list[NetworkStatement] = field(default_factory=list)
    tensors: dict[str, Array | BooleanSelection] = field(default_factory=dict)
    title: str = "value"
    _taken: set[str] = field(default_factory=set)
    _known: dict[Hashable, str] = field(default_factory=dict)

    def invent(self, base: str) -> str:
        """A name that no tensor has yet: `base`, with a number if that is taken."""
        name = unused_name(base, lambda name: name.lower() in self._taken, "_")
        self._taken.add(name.lower())
        return name

    def constant(self, array: Array, name: str) -> NetworkValue:
        """The value of an array, which becomes a tensor unless it is one number; `name` is a suggestion.

        Raises:
            SemanticsError: Tensors have no such numbers.
        """
        numbers, kind = _numbers(array, name)
        axes = [new_axis(size) for size in numbers.shape]
        if numbers.size == 1 and numbers.reshape(()) == numbers.reshape(()):
            return NetworkValue(tuple(axes), ConstantTerm(numbers.item()), kind)
        squeezed = numbers.squeeze()
        tensor = self.named(name, content_of(squeezed), squeezed)
        return NetworkValue(tuple(axes), read(tensor, [factor for axis in axes for factor in axis]), kind)

    def stored(self, value: NetworkValue) -> NetworkValue:
        """The value as a tensor that a statement computes, with an axis for each label, unless it is one already."""
        if not tensors_of(value.term):
            return value
        if isinstance(value.term, Read) and value.term.indices == tuple(plain(f.label) for f in value.factors):
            return value
        return self.computed(value.axes, value.term, value.kind, title=value.title)

    def computed(
        self,
        axes: Sequence[FactoredAxis],
        term: IndexTerm,
        kind: str,
        aggregation: StatementAggregate | None = None,
        title: str = "",
    ) -> NetworkValue:
        """The value that a new statement computes.

        Args:
            axes: The axes of the value; its tensor has an axis for each of their labels.
            term: What the statement computes.
            kind: The kind of its numbers: bool, int or float.
            aggregation: What it aggregates; None for nothing.
            title: What the name of the tensor begins with; by default the title of the writer.
        """
        factors = [factor for axis in axes for factor in axis]
        name = self.invent(title or self.title)
        self.write(name, factors, term, aggregation)
        return NetworkValue(tuple(axes), read(name, factors), kind)

    def write(
        self, name: str, factors: Sequence[SizedLabel], term: IndexTerm, aggregation: StatementAggregate | None = None
    ) -> None:
        """Add the statement that computes the tensor of a name, which has an axis for every factor."""
        aggregated = aggregation.factors if aggregation is not None else ()
        missing = tuple(factor.label for factor in aggregated if factor.label not in labels_of(term))
        if missing:
            term = FormulaTerm("where({0}, {1}, 0)", (Ones(missing), term))
        sizes = {factor.label: factor.size for factor in (*factors, *aggregated)}
        term = self._with_layouts(term, sizes)
        self.statements.append(write_statement(name, factors, term, tensors_of(term), aggregation))

    def _with_layouts(self, term: IndexTerm, sizes: Mapping[str, int]) -> IndexTerm:
        """The term with weights in the layout in which it reads them, so that no statement selects from a weight."""
        match term:
            case FormulaTerm(_, arguments):
                return replace(term, arguments=tuple(self._with_layouts(argument, sizes) for argument in arguments))
            case Read(tensor, indices, shape) if isinstance(self.tensors.get(tensor), np.ndarray):
                labels = labels_of(term)
                if indices == tuple(map(plain, labels)) and shape == tuple(sizes[label] for label in labels):
                    return term
                factors = [SizedLabel(label, sizes[label]) for label in labels]
                if math.prod(factor.size for factor in factors) > _LARGEST_GROWTH * math.prod(shape):
                    return term
                array = self.gathered(term, factors)
                if not labels:
                    return ConstantTerm(array.item())
                name = self.named(tensor, content_of(array), array)
                return read(name, factors)
            case _:
                return term

    def gathered(self, read: Read, factors: Sequence[SizedLabel]) -> Array:
        """The elements of a weight that is read at some indices, with an axis for every factor."""
        array = self.tensors[read.tensor]
        assert isinstance(array, np.ndarray)
        grid = dict(zip((f.label for f in factors), np.indices([f.size for f in factors], sparse=True), strict=True))
        places = []
        for index in read.indices:
            place = np.full((1,) * len(factors), index.offset)
            for label, times in index.terms:
                place = place + times * grid[label]
            places.append(place)
        return np.broadcast_to(array[tuple(places)], [factor.size for factor in factors])

    def named(self, base: str, content: Hashable, data: Array | BooleanSelection) -> str:
        """The name of the tensor of some data, which is added unless an equal one is known."""
        if content not in self._known:
            self._known[content] = self.invent(base)
            self.tensors[self._known[content]] = data
        return self._known[content]


def read(tensor: str, factors: Sequence[SizedLabel]) -> Read:
    """A tensor that is read at mere labels."""
    return Read(tensor, tuple(plain(factor.label) for factor in factors), tuple(factor.size for factor in factors))


def _numbers(array: Array, name: str) -> tuple[Array, str]:
    """An array of a dtype that tensors have, and the kind of its numbers."""
    if array.dtype == bool:
        return array, "bool"
    if array.dtype.kind in "iu" and not (array.size and array.max() > np.iinfo(np.int64).max):
        return array.astype(np.int64), "int"
    if array.dtype in (np.float64, np.float32):
        return array, "float"
    if array.dtype == np.float16 or array.dtype.name == "bfloat16":
        return array.astype(np.float32), "float"
    raise SemanticsError(f"{name} has numbers of dtype {array.dtype}, which programs lack")
