"""Language: syntax trees of programs, what stands in them, and how they are written as text."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sparseeinsum.errors import ParseError
from sparseeinsum.language.scalar import write, write_number
from sparseeinsum.operators import dtypes
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES


@dataclass(frozen=True, slots=True)
class Source:
    """Program text, and the file that it is from, as errors name it; None where it is from none."""

    text: str
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """Where something stands in a text; line and column count from 1. What no text has stands in no source."""

    line: int
    column: int
    source: Source | None = field(default=None, repr=False)

    def error(self, problem: str, source: Source) -> ParseError:
        """An error that points here, or into some other source where this is in none."""
        where = self.source or source
        return ParseError(problem, where.text, self.line, self.column, where.file)


NOWHERE = Position(1, 1)


@dataclass(frozen=True, slots=True)
class Number:
    """A literal, with its sign if it has one."""

    value: dtypes.Number
    at: Position = field(default=NOWHERE, compare=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and Literal(self.value) == Literal(other.value)

    def __hash__(self) -> int:
        return hash(Literal(self.value))


@dataclass(frozen=True, slots=True)
class TensorReference:
    """NAME[labels], as written; `tiles` are of labels in lower case, where they hold several indices."""

    tensor: str
    labels: tuple[str, ...]
    tiles: tuple[tuple[str, int], ...] = ()
    at: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class BoundExpression:
    """bound(label), or bound(tensor, axis); with `label`, the axis is what gives that label its bound."""

    name: str
    axis: int | None = None
    label: str | None = None
    at: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class RangeExpression:
    """index(label: bound), the index itself, or ones(label: bound), true for every index; None: no bound given."""

    kind: str
    label: str
    bound: int | BoundExpression | None = None
    at: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """name(arguments), with the labels of name[labels](argument), or None where none are given; operators, too."""

    name: str
    labels: tuple[str, ...] | None
    arguments: tuple["Expression", ...]
    at: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class MatrixName:
    """NAME without labels, a tensor in a statement of linear algebra."""

    name: str
    at: Position = field(default=NOWHERE, compare=False)


Expression = Number | TensorReference | BoundExpression | RangeExpression | FunctionCall | MatrixName

# Operators of linear algebra, as functions that nobody can call by these names.
MATRIX_PRODUCT, TRANSPOSE = "@", ".T"


@dataclass(frozen=True, slots=True)
class Assignment:
    """target = value."""

    target: TensorReference
    value: Expression


@dataclass(frozen=True, slots=True)
class MatrixAssignment(Assignment):
    """name = value, in linear algebra: neither the target nor tensors in the value have labels yet."""


@dataclass(frozen=True, slots=True)
class MatrixDeclaration:
    """matrix NAME, vector NAME or scalar NAME: how many axes a tensor has."""

    tensor: str
    kind: str
    at: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Declaration:
    """tensor NAME[axis: bound, ...] fill F dtype D; None where not given."""

    tensor: str
    axes: tuple[tuple[str, int], ...]
    fill: dtypes.Number | None
    dtype: str | None
    at: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Import:
    """tensor NAME[axis: bound, ...] from RELATION index COLUMN, ... value COLUMN fill F dtype D.

    Attributes:
        tensor: Its name in the program.
        axes: Names and bounds; None where the data tell the bound.
        relation: The table, view or file, as the user names it.
        index: Columns of the indices, in the order of the axes.
        value: Column of the values; None where every row counts as 1.
        fill: Value of what no row has; None where not given.
        dtype: Of the values; None where not given.
        at: Where it stands.
    """

    tensor: str
    axes: tuple[tuple[str, int | None], ...]
    relation: str
    index: tuple[str, ...]
    value: str | None = None
    fill: dtypes.Number | None = None
    dtype: str | None = None
    at: Position = field(default=NOWHERE, compare=False)


LabelledStatement = Assignment | Declaration | Import
Statement = LabelledStatement | MatrixAssignment | MatrixDeclaration

# Macros that aggregate the labels that they name, as in mean[j](...); others keep them, as in softmax[j](...).
AGGREGATING_MACROS = frozenset({"mean", "var", "norm", "count", "sumsq", "argmax", "argmin"})


def is_aggregate(call: FunctionCall) -> bool:
    """Whether a call aggregates labels; min and max of two arguments are scalar functions."""
    if call.name in AGGREGATING_MACROS or call.name in PICKS or call.name in USER_AGGREGATES:
        return True
    if call.name not in AGGREGATES:
        return False
    return call.labels is not None or len(call.arguments) == 1 or call.name not in FUNCTIONS


def lowercase_labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    """Labels without regard to case."""
    return tuple(label.lower() for label in labels)


def written_labels(expression: Expression) -> Iterator[tuple[str, Position]]:
    """Every label as written, those that aggregates name, too, and where it stands; bound(j) promotes nothing."""
    match expression:
        case TensorReference(_, labels, _, at) | FunctionCall(_, labels, _, at) if labels:
            yield from ((label, at) for label in labels)
        case RangeExpression(_, label, _, at):
            yield label, at
    if isinstance(expression, FunctionCall):
        for argument in expression.arguments:
            yield from written_labels(argument)


def references(expression: Expression) -> Iterator[TensorReference]:
    """Every reference to a tensor."""
    if isinstance(expression, TensorReference):
        yield expression
    if isinstance(expression, FunctionCall):
        for argument in expression.arguments:
            yield from references(argument)


def is_promoted(label: str) -> bool:
    """Whether a label as written is promoted by hand."""
    return label[0].isupper()


def free_labels(expression: Expression) -> Iterator[str]:
    """Labels of all references, in order, without those that aggregates around them name."""
    match expression:
        case TensorReference(_, labels):
            yield from lowercase_labels(labels)
        case RangeExpression(_, label):
            yield label.lower()
        case FunctionCall(_, labels, arguments):
            named = lowercase_labels(labels or ()) if is_aggregate(expression) else ()
            inside = [label for argument in arguments for label in free_labels(argument)]
            yield from (label for label in inside if label not in named)
            if expression.name in USER_AGGREGATES:  # a label that counts the numbers of states
                yield from (label for label in named if label not in inside)


def labels_of(expression: Expression) -> frozenset[str]:
    """The free labels of an expression."""
    return frozenset(free_labels(expression))


def write_statement(statement: LabelledStatement) -> str:
    """A statement as program text."""
    if isinstance(statement, Assignment):
        return f"{write_expression(statement.target)} = {write_expression(statement.value)}"
    axes = ", ".join(name if bound is None else f"{name}: {bound}" for name, bound in statement.axes)
    origin = _write_origin(statement) if isinstance(statement, Import) else ""
    fill = "" if statement.fill is None else f" fill {write_number(statement.fill)}"
    dtype = "" if statement.dtype is None else f" dtype {statement.dtype}"
    return f"tensor {statement.tensor}[{axes}]{origin}{fill}{dtype}"


def _write_origin(statement: Import) -> str:
    is_by_axis = statement.index == tuple(name for name, _ in statement.axes)
    index = "" if is_by_axis else f" index {', '.join(map(_quoted, statement.index))}"
    value = "" if statement.value is None else f" value {_quoted(statement.value)}"
    return f" from {_quoted(statement.relation)}{index}{value}"


def _quoted(text: str) -> str:
    return f"'{text}'" if '"' in text else f'"{text}"'


def write_expression(expression: Expression) -> str:
    """An expression as program text, with as few parentheses as its operators need."""
    leaves: list[str] = []
    return write(_as_scalar(expression, leaves), leaves)


def _as_scalar(expression: Expression, leaves: list[str]) -> Scalar:
    """The expression with everything that is no operator as an operand, whose text goes to `leaves`."""
    match expression:
        case Number(value):
            return Literal(value)
        case FunctionCall(name, None, arguments) if name in FUNCTIONS and len(arguments) == FUNCTIONS[name].operands:
            return Call(name, tuple(_as_scalar(argument, leaves) for argument in arguments))
        case _:
            leaves.append(_write_leaf(expression))
            return Operand(len(leaves) - 1)


def _write_leaf(expression: Expression) -> str:
    match expression:
        case TensorReference(tensor, labels, tiles):
            sizes = dict(tiles)
            written = (f"{label}:{sizes[label.lower()]}" if label.lower() in sizes else label for label in labels)
            return f"{tensor}[{', '.join(written)}]"
        case BoundExpression(name, axis):
            return f"bound({name})" if axis is None else f"bound({name}, {axis})"
        case RangeExpression(kind, label, bound):
            return write_range(kind, label, bound if bound is None or isinstance(bound, int) else _write_leaf(bound))
        case FunctionCall(name, labels, arguments):
            named = f"[{', '.join(labels)}]" if labels else ""
            return f"{name}{named}({', '.join(write_expression(argument) for argument in arguments)})"
        case Number(value):
            return write_number(value)
        case MatrixName(name):
            return name


def write_range(kind: str, label: str, bound: int | str | None) -> str:
    """The values of a label as program text: index(k: 10)."""
    return f"{kind}({label})" if bound is None else f"{kind}({label}: {bound})"
