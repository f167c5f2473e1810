"""Language: parses numpy's einsum notation, such as 'ij,jk->ik', to a Program. Here I and i are different labels."""

import itertools
import operator
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import opt_einsum

from sparseeinsum.errors import ParseError, SemanticsError, ShapeError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.lowering import lower
from sparseeinsum.language.parsing import parse_join
from sparseeinsum.language.syntax import (
    Assignment,
    ExpressionTree,
    FunctionCall,
    NumberLiteral,
    SourceText,
    TensorReference,
)
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.functions import FUNCTIONS

RESULT_NAME = "result"

_ELLIPSIS = "..."
_FIRST_OTHER_SYMBOL = ord(opt_einsum.get_symbol(52))
_EXAMPLE = "write subscripts as in 'ij,jk->ik'"
_TOKEN = re.compile(r"\.\.\.|->|.", re.DOTALL)
_OPERATORS = frozenset(function.symbol for function in FUNCTIONS.values() if function.operands == 2) - {""} | {"**"}


@dataclass(frozen=True, slots=True)
class Subscripts:
    """Parsed subscripts. Every letter is a label, and every axis that an ellipsis stands for is a label, too.

    Attributes:
        text: The subscripts as written.
        terms: The labels of every operand, one for each axis.
        output: The labels of the result.
    """

    text: str
    terms: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]

    def stretched_axes(self, shapes: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
        """The axes of every operand that numpy would stretch: of size 1, with a label that is longer elsewhere.

        Args:
            shapes: The shapes of the operands.

        Raises:
            ShapeError: A label has two sizes.
        """
        sizes: dict[str, tuple[int, int]] = {}  # label -> size, position of an operand that has it
        for number, shape in enumerate(shapes):
            for label, size in self._sizes_in_operand(number, shape).items():
                earlier, earlier_number = sizes.get(label, (1, number))
                if 1 not in (earlier, size) and earlier != size:
                    raise self._two_sizes(label, (earlier, earlier_number), (size, number))
                if earlier == 1:
                    sizes[label] = (size, number)
        return tuple(
            tuple(axis for axis, label in enumerate(term) if shape[axis] == 1 != sizes[label][0])
            for term, shape in zip(self.terms, shapes, strict=True)
        )

    def result_shape(self, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """The shape of the result of operands whose sizes fit together; axes of size 1 stretch."""
        sizes: dict[str, int] = {}
        for term, shape in zip(self.terms, shapes, strict=True):
            for label, size in zip(term, shape, strict=True):
                sizes[label] = size if sizes.get(label, 1) == 1 else sizes[label]
        return tuple(sizes[label] for label in self.output)

    def _sizes_in_operand(self, number: int, shape: tuple[int, ...]) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for label, size in zip(self.terms[number], shape, strict=True):
            if sizes.setdefault(label, size) != size:
                raise self._two_sizes(label, (sizes[label], number), (size, number))
        return sizes

    def _two_sizes(self, label: str, *sizes_and_operands: tuple[int, int]) -> ShapeError:
        sizes = ", ".join(f"{size} in operand {number + 1}" for size, number in sizes_and_operands)
        axis = f"axis -{label[len(_ELLIPSIS) :]} of the ellipsis" if label.startswith(_ELLIPSIS) else f"label {label}"
        return ShapeError(f"{axis} of {self.text!r} has two sizes: {sizes}")

    def program(
        self,
        stretched: Sequence[tuple[int, ...]],
        join: str = "*",
        aggregate: str = "sum",
        tensors: Sequence[str] | None = None,
    ) -> Program:
        """The Program that computes the result; its operands lack their stretched axes.

        Args:
            stretched: The stretched axes of every operand.
            join: An operator, a function, or a scalar expression of the operands.
            aggregate: The aggregate over the labels that the result lacks.
            tensors: The names of the operands in the program; by default u, v, w, ..., as in a join.

        Raises:
            ParseError: The join has a syntax error.
            SemanticsError: The join lacks an operand, or the aggregate is unknown.
        """
        if aggregate not in AGGREGATES:
            raise SemanticsError(f"agg {aggregate!r} is unknown; it must be one of {', '.join(AGGREGATES)}")
        labels = _label_names(self.terms)
        names = operand_names(len(self.terms))
        labels_of_operands = [
            tuple(labels[label] for axis, label in enumerate(term) if axis not in removed)
            for term, removed in zip(self.terms, stretched, strict=True)
        ]
        references = {
            name: TensorReference(tensor, labels_of_operand)
            for name, tensor, labels_of_operand in zip(names, tensors or names, labels_of_operands, strict=True)
        }
        text = _expression(join, tuple(references))
        body = _with_labels(parse_join(text, tuple(references)), references, text)
        if any(label not in self.output for label in itertools.chain(*self.terms)):
            body = FunctionCall(aggregate, None, (body,))
        target = TensorReference(RESULT_NAME, tuple(labels[label] for label in self.output))
        return lower((Assignment(target, body),), SourceText(text))


def operand_names(count: int) -> tuple[str, ...]:
    """The names of `count` operands: u, v, w, x, y, z, a, ..., t, u1, v1, ..."""
    letters = "uvwxyzabcdefghijklmnopqrst"
    return tuple(letters[n % 26] + (str(n // 26) if n >= 26 else "") for n in range(count))


def _expression(join: str, operands: tuple[str, ...]) -> str:
    """The text of a join: an operator is written between the operands, a function before them."""
    if join in _OPERATORS:
        return f" {join} ".join(operands)
    return f"{join}({', '.join(operands)})" if join in FUNCTIONS else join


def _with_labels(expression: ExpressionTree, references: dict[str, TensorReference], text: str) -> ExpressionTree:
    lacking = [name for name in references if name not in _operands(expression, text)]
    if lacking:
        raise SemanticsError(f"the join {text!r} lacks {', '.join(lacking)}; it must have every operand")
    return _replaced(expression, references)


def _operands(expression: ExpressionTree, text: str) -> frozenset[str]:
    """The names of the operands of a join; refuses everything but numbers, operators and scalar functions."""
    match expression:
        case NumberLiteral():
            return frozenset()
        case TensorReference(name, ()):
            return frozenset((name,))
        case FunctionCall(name, None, arguments) if name in FUNCTIONS and len(arguments) == FUNCTIONS[name].operands:
            return reduce(operator.or_, (_operands(argument, text) for argument in arguments))
        case _:
            problem = "a join can only have operands, numbers, operators and scalar functions"
            raise expression.at.error(problem, SourceText(text))


def _replaced(expression: ExpressionTree, references: dict[str, TensorReference]) -> ExpressionTree:
    match expression:
        case TensorReference(name):
            return references[name]
        case FunctionCall(name, _, arguments):
            replaced = tuple(_replaced(argument, references) for argument in arguments)
            return FunctionCall(name, None, replaced, expression.at)
        case _:
            return expression


def _label_names(terms: tuple[tuple[str, ...], ...]) -> dict[str, str]:
    """A name in programs for every label: an ASCII letter itself; no two names differ by case alone."""
    names: dict[str, str] = {}
    for label in dict.fromkeys(itertools.chain(*terms)):
        name = label.lower() if label.isascii() and label.isalpha() else f"d{len(names)}"
        names[label] = name if name not in names.values() else f"{name}_{len(names)}"
    return names


def read_subscripts(subscripts: str, ranks: Sequence[int]) -> Subscripts:
    """Parse subscripts; `ranks` are the numbers of axes of the operands.

    Without `->` the result has the axes of the ellipsis, then the labels that occur once, sorted.

    Raises:
        ParseError: The subscripts have a syntax error.
        ShapeError: An operand has more or fewer axes than the subscripts have labels for it.
    """
    terms, output = _split_terms(subscripts)
    if len(terms) != len(ranks):
        described = f"{len(terms)} operand{'s' if len(terms) > 1 else ''}"
        raise ParseError(f"the subscripts describe {described}, but {len(ranks)} were given", subscripts, 1, 1)
    expanded = [
        _expand_ellipsis(term, rank, number, subscripts)
        for number, (term, rank) in enumerate(zip(terms, ranks, strict=True), 1)
    ]
    longest = max(
        (len(term) - _count_letters(written) for term, written in zip(expanded, terms, strict=True)), default=0
    )
    axes = _ellipsis_axes(longest)
    if output is None:
        counts = Counter(itertools.chain(*expanded))
        once = sorted(label for label, count in counts.items() if count == 1 and label not in axes)
        return Subscripts(subscripts, tuple(expanded), (*axes, *once))
    if axes and _ELLIPSIS not in output:
        problem = f"the ellipsis stands for {len(axes)} ax{'e' if len(axes) > 1 else 'i'}s, which the result lacks"
        raise ParseError(f"{problem}; write ... there, too", subscripts, 1, subscripts.index("->") + 3)
    result = itertools.chain(*(axes if label == _ELLIPSIS else (label,) for label in output))
    return Subscripts(subscripts, tuple(expanded), tuple(result))


def _count_letters(term: Sequence[str]) -> int:
    return sum(label != _ELLIPSIS for label in term)


def _ellipsis_axes(count: int) -> tuple[str, ...]:
    """The labels of the axes that an ellipsis stands for; they are counted from the last one, as in broadcasting."""
    return tuple(f"{_ELLIPSIS}{number}" for number in range(count, 0, -1))


def _expand_ellipsis(term: Sequence[str], rank: int, number: int, subscripts: str) -> tuple[str, ...]:
    """The labels of an operand, one for each axis, with those of the axes of an ellipsis in its place."""
    free = rank - _count_letters(term)
    if free < 0 or (free and _ELLIPSIS not in term):
        labels = "1 label" if _count_letters(term) == 1 else f"{_count_letters(term)} labels"
        axes = "1 axis" if rank == 1 else f"{rank} axes"
        raise ShapeError(f"operand {number} of {subscripts!r} has {labels}, but {axes}")
    return tuple(itertools.chain(*(_ellipsis_axes(free) if label == _ELLIPSIS else (label,) for label in term)))


def _split_terms(subscripts: str) -> tuple[list[list[str]], list[str] | None]:
    """The labels of every operand, and those of the result if there is `->`; an ellipsis counts as one label."""
    terms: list[list[str]] = [[]]
    output: list[str] | None = None
    for token, column in _tokens(subscripts):
        if token == "->" and output is None:
            output = []
        elif token == "," and output is None:
            terms.append([])
        elif token in ("->", ",", "-", ">"):
            raise ParseError(f"{token[0]!r} has no meaning here; {_EXAMPLE}", subscripts, 1, column)
        elif output is None:
            _check_ellipsis(token, terms[-1], subscripts, column)
            terms[-1].append(token)
        else:
            _check_ellipsis(token, output, subscripts, column)
            _check_output(token, terms, output, subscripts, column)
            output.append(token)
    return terms, output


def _tokens(subscripts: str) -> Iterator[tuple[str, int]]:
    """Labels, ellipses, commas and arrows, each with its column."""
    for match in _TOKEN.finditer(subscripts):
        token, column = match[0], match.start() + 1
        if token == ".":
            raise ParseError("a single '.' has no meaning; an ellipsis is '...'", subscripts, 1, column)
        if not (_is_label(token) or token in (_ELLIPSIS, "->", " ", ",", "-", ">")):
            raise ParseError(f"{token!r} is not a label; labels are letters", subscripts, 1, column)
        if token != " ":
            yield token, column


def _is_label(token: str) -> bool:
    """Whether a token is a letter, or one of the characters that follow the letters a to Z in opt_einsum."""
    return token.isalpha() or (len(token) == 1 and ord(token) >= _FIRST_OTHER_SYMBOL and not token.isspace())


def _check_ellipsis(token: str, term: list[str], subscripts: str, column: int) -> None:
    if token == _ELLIPSIS and _ELLIPSIS in term:
        raise ParseError("there is an ellipsis already; one is enough", subscripts, 1, column)


def _check_output(label: str, terms: list[list[str]], output: list[str], subscripts: str, column: int) -> None:
    if label == _ELLIPSIS:
        return
    if not any(label in term for term in terms):
        raise ParseError(f"label {label} of the result is in no operand", subscripts, 1, column)
    if label in output:
        raise ParseError(f"label {label} occurs twice in the result", subscripts, 1, column)
