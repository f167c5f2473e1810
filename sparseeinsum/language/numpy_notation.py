"""Language: numpy's einsum notation, as in 'ij,jk->ik', in; a Program out. Here I and i are two labels."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sparseeinsum.errors import ParseError, SemanticsError, ShapeError
from sparseeinsum.language.eingraph import EinSum, Program, Reference
from sparseeinsum.language.scalar import AGGREGATES, FUNCTIONS, PRODUCT, Call, Operand, Scalar

OPERAND_NAMES = ("u", "v")
RESULT_NAME = "w"

_EXAMPLE = "write subscripts as in 'ij,jk->ik'"


@dataclass(frozen=True, slots=True)
class Subscripts:
    """Subscripts as they were read: a letter is a label.

    Attributes:
        text: As written.
        terms: Labels of every operand, one an axis.
        output: Labels of the result.
    """

    text: str
    terms: tuple[str, ...]
    output: str

    def stretched_axes(self, shapes: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
        """For every operand its axes of size 1 whose label is longer in the other operand, as numpy stretches them.

        Raises:
            ShapeError: An operand has another number of axes than its term, or a label two sizes.
        """
        sizes: dict[str, tuple[int, int]] = {}  # with the operand that has it
        for number, shape in enumerate(shapes):
            for label, size in self._own_sizes(number, shape).items():
                known, where = sizes.get(label, (1, number))
                if 1 not in (known, size) and known != size:
                    raise self._clash(label, (known, where), (size, number))
                if known == 1:
                    sizes[label] = (size, number)
        return tuple(
            tuple(axis for axis, label in enumerate(term) if shape[axis] == 1 != sizes[label][0])
            for term, shape in zip(self.terms, shapes, strict=True)
        )

    def _own_sizes(self, number: int, shape: tuple[int, ...]) -> dict[str, int]:
        term = self.terms[number]
        if len(term) != len(shape):
            labels = "1 label" if len(term) == 1 else f"{len(term)} labels"
            raise ShapeError(f"operand {number + 1} of {self.text!r} has {labels}, but the shape {shape}")
        sizes: dict[str, int] = {}
        for label, size in zip(term, shape, strict=True):
            if sizes.setdefault(label, size) != size:
                raise self._clash(label, (sizes[label], number), (size, number))
        return sizes

    def _clash(self, label: str, *found: tuple[int, int]) -> ShapeError:
        sizes = ", ".join(f"{size} in operand {number + 1}" for size, number in found)
        return ShapeError(f"label {label} of {self.text!r} has two sizes: {sizes}")

    def program(self, stretched: Sequence[tuple[int, ...]], join: str = "*", aggregate: str = "sum") -> Program:
        """A Program that computes the result, named w, of operands named u and v, which lack their stretched axes.

        Args:
            stretched: For every operand, the axes that it lacks.
            join: Operator between two operands: one of + - * / ^.
            aggregate: What folds the labels that the result lacks.

        Raises:
            SemanticsError: There is no such join or aggregate.
        """
        names = _label_names("".join(self.terms))
        references = tuple(
            Reference(name, tuple(names[label] for axis, label in enumerate(term) if axis not in lacking))
            for name, term, lacking in zip(OPERAND_NAMES, self.terms, stretched, strict=False)
        )
        result = Reference(RESULT_NAME, tuple(names[label] for label in self.output))
        fold = _aggregate(aggregate)
        is_reduction = any(label not in self.output for label in "".join(self.terms))
        einsum = EinSum(result, references, _join(join, len(references)), fold if is_reduction else None)
        return Program((einsum,), outputs=(RESULT_NAME,))


def read_subscripts(subscripts: str, operands: int) -> Subscripts:
    """Read subscripts of so many operands; without `->` the result has the labels that stand once, sorted.

    Raises:
        ParseError: The subscripts make no sense.
        SemanticsError: More than two operands, or an ellipsis: not supported yet.
    """
    if not isinstance(subscripts, str):
        raise ParseError(f"the subscripts are no text; {_EXAMPLE}", repr(subscripts), 1, 1)
    if "." in subscripts:
        raise SemanticsError("an ellipsis in subscripts is not supported yet; write every label")
    if operands > len(OPERAND_NAMES):
        raise SemanticsError(f"einsum of {operands} operands is not supported yet; contract two at a time")
    _check_characters(subscripts)
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = tuple(inputs.split(","))
    if len(terms) != operands:
        described = f"{len(terms)} operand{'s' if len(terms) > 1 else ''}"
        raise ParseError(f"the subscripts describe {described}, but {operands} were given", subscripts, 1, 1)
    if not arrow:
        counts = Counter("".join(terms))
        output = "".join(sorted(label for label, count in counts.items() if count == 1))
    else:
        _check_output(subscripts, terms)
    return Subscripts(subscripts, terms, output)


def _check_characters(subscripts: str) -> None:
    before, arrow, _ = subscripts.partition("->")
    for position, character in enumerate(subscripts):
        column = position + 1
        if arrow and len(before) <= position < len(before) + len(arrow):
            continue
        if character in "->" or (character == "," and position > len(before)):
            raise ParseError(f"{character!r} makes no sense here; {_EXAMPLE}", subscripts, 1, column)
        if not (character.isascii() and character.isalpha()) and character not in " ,":
            raise ParseError(f"{character!r} is no label; labels are letters from a to Z", subscripts, 1, column)


def _check_output(subscripts: str, terms: tuple[str, ...]) -> None:
    start = subscripts.index("->") + len("->")
    seen = set()
    for position, label in enumerate(subscripts[start:], start):
        if label == " ":
            continue
        if label not in "".join(terms):
            raise ParseError(f"label {label} of the result is in no operand", subscripts, 1, position + 1)
        if label in seen:
            raise ParseError(f"label {label} stands twice in the result", subscripts, 1, position + 1)
        seen.add(label)


def _label_names(labels: str) -> dict[str, str]:
    """A label name for each letter; names differ also without case."""
    names: dict[str, str] = {}
    for label in dict.fromkeys(labels):
        name = label.lower()
        names[label] = name if name not in names.values() else f"{name}_{len(names)}"
    return names


def _join(join: str, operands: int) -> Scalar:
    binary = {
        function.symbol: name for name, function in FUNCTIONS.items() if function.symbol and function.operands == 2
    }
    if join not in binary:
        raise SemanticsError(f"join {join!r} is none of {' '.join(binary)}")
    if operands == 1:
        return Operand(0)
    return PRODUCT if binary[join] == "mul" else Call(binary[join], (Operand(0), Operand(1)))


def _aggregate(aggregate: str) -> str:
    if aggregate not in AGGREGATES:
        raise SemanticsError(f"agg {aggregate!r} is none of {', '.join(AGGREGATES)}")
    return aggregate
