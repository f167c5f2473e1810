"""Language: the syntax trees of programs, and queries on them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from sparseeinsum.errors import ParseError
from sparseeinsum.language.affine_indices import AffineIndex, Limit
from sparseeinsum.operators import dtypes
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.expressions import Literal
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES

RULE_OF_NAMES = "names have letters without accents, digits and _"


def is_name(text: str) -> bool:
    """Return whether program text can name a tensor, a label or a function so."""
    return text.isascii() and text.isidentifier()


@dataclass(frozen=True, slots=True)
class SourceText:
    """Program text, and the name of its file for errors; None if it is from no file."""

    text: str
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """A place in program text; line and column count from 1. The source is None for nodes that no text contains."""

    line: int
    column: int
    source: SourceText | None = field(default=None, repr=False)

    def error(self, problem: str, source: SourceText) -> ParseError:
        """A parse error that points at this place, in its own source or else in `source`."""
        text = self.source or source
        return ParseError(problem, text.text, self.line, self.column, text.file)


NOWHERE = Position(1, 1)

ErrorAt = Callable[[str, Position], ParseError]  # makes the error of a problem at a place


@dataclass(frozen=True, slots=True)
class NumberLiteral:
    """A literal number, including its sign."""

    value: dtypes.Number
    at: Position = field(default=NOWHERE, compare=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberLiteral) and Literal(self.value) == Literal(other.value)

    def __hash__(self) -> int:
        return hash(Literal(self.value))


@dataclass(frozen=True, slots=True)
class TensorReference:
    """NAME[labels], as written. `tiles` are the tiles of several indices, by labels in lower case."""

    tensor: str
    labels: tuple[str, ...]
    tiles: tuple[tuple[str, int], ...] = ()
    at: Position = field(default=NOWHERE, compare=False)

    @property
    def indices(self) -> tuple[str, ...]:
        """The index of every axis, which is a label."""
        return self.labels

    @property
    def rank(self) -> int:
        """The number of axes that it indexes."""
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class IndexedReference:
    """NAME[indices], as written, of which one or more are no mere labels, such as A[i, 2*j + 1]; tiles as above."""

    tensor: str
    indices: tuple[str | AffineIndex, ...]
    tiles: tuple[tuple[str, int], ...] = ()
    at: Position = field(default=NOWHERE, compare=False)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in the indices, in order, each once."""
        labels = ((index,) if isinstance(index, str) else index.labels for index in self.indices)
        return tuple(dict.fromkeys(label for labels_here in labels for label in labels_here))

    @property
    def rank(self) -> int:
        """The number of axes that it indexes."""
        return len(self.indices)


@dataclass(frozen=True, slots=True)
class BoundExpression:
    """bound(name) of a label, or bound(name, axis) of a tensor. `label` is set if an axis was resolved from a label."""

    name: str
    axis: int | None = None
    label: str | None = None
    at: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class RangeExpression:
    """index(label: bound), the index itself, or ones(label: bound), true everywhere; the bound is None if not given."""

    kind: str
    label: str
    bound: int | BoundExpression | None = None
    at: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """name(arguments) or name[labels](arguments), also of an operator; the labels are None if there are no brackets."""

    name: str
    labels: tuple[str, ...] | None
    arguments: tuple["ExpressionTree", ...]
    at: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class AppliedFunction:
    """NAME(arguments)[indices]: an element of the tensor that a function of the program computes.

    Attributes:
        name: The function.
        arguments: Its arguments, without labels.
        indices: The index of every axis; a label or affine.
        tiles: The tiles of several indices, by labels in lower case.
        at: The place of the name.
    """

    name: str
    arguments: tuple["ExpressionTree", ...]
    indices: tuple[str | AffineIndex, ...]
    tiles: tuple[tuple[str, int], ...] = ()
    at: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class MatrixName:
    """NAME without labels: a tensor in a statement of linear algebra."""

    name: str
    at: Position = field(default=NOWHERE, compare=False)


ExpressionTree = (
    NumberLiteral
    | TensorReference
    | IndexedReference
    | BoundExpression
    | RangeExpression
    | FunctionCall
    | AppliedFunction
    | MatrixName
)

GRADIENT = "gradient"  # the function of a scalar and a tensor that programs need not define

# Operators of linear algebra, as functions; no call in program text can have these names.
MATRIX_PRODUCT, TRANSPOSE = "@", ".T"

STEP = "step"  # the scalar tensor with the number of the present step of a loop, from 0
PREVIOUS = "previous."  # before the name of a number, in the condition of a loop: its value in the step before


@dataclass(frozen=True, slots=True)
class Assignment:
    """A statement `target = value`, or `target = value for limits`."""

    target: TensorReference
    value: ExpressionTree
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True, slots=True)
class MatrixAssignment(Assignment):
    """A statement `name = value` of linear algebra, before its tensors have labels."""


@dataclass(frozen=True, slots=True)
class MatrixDeclaration:
    """matrix NAME, vector NAME or scalar NAME: declares the number of axes of a tensor."""

    tensor: str
    kind: str
    at: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class StateDeclaration:
    """state NAME: a tensor that every step of a loop replaces, by the tensor next_NAME."""

    tensor: str
    at: Position = field(default=NOWHERE, compare=False)

    @property
    def next_value(self) -> str:
        """The name of the tensor with the values of the next step."""
        return f"next_{self.tensor}"


@dataclass(frozen=True, slots=True)
class Differentiation:
    """The tensor of the partial derivatives of a scalar by the elements of a tensor, for gradient(of, by).

    Attributes:
        tensor: The name of the result.
        of: The scalar.
        by: The tensor.
        at: The place of the call.
    """

    tensor: str
    of: str
    by: str
    at: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Declaration:
    """tensor NAME[axis: bound, ...] fill F dtype D; the fill and the dtype are None if not given."""

    tensor: str
    axes: tuple[tuple[str, int], ...]
    fill: dtypes.Number | None
    dtype: str | None
    at: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Import:
    """tensor NAME[axis: bound, ...] from RELATION index COLUMN, ... value COLUMN fill F dtype D.

    Attributes:
        tensor: The name of the tensor in the program.
        axes: The names and bounds of the axes; a bound is None if it follows from the data.
        relation: The table, view or file, as the user names it.
        index: The columns of the indices, in the order of the axes.
        value: The column of the values; None if every row has the value 1.
        fill: The fill; None if not given.
        dtype: The dtype of the values; None if not given.
        at: The place of the statement.
    """

    tensor: str
    axes: tuple[tuple[str, int | None], ...]
    relation: str
    index: tuple[str, ...]
    value: str | None = None
    fill: dtypes.Number | None = None
    dtype: str | None = None
    at: Position = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Definition:
    """def NAME(parameters)[labels] = body, a function of tensors.

    Attributes:
        name: The name of the function.
        parameters: The names of its parameters, with their default values; None where there is none.
        labels: The labels of its result; None for a function of linear algebra, whose body has no labels.
        body: The expression of the result.
        at: The place of the statement.
    """

    name: str
    parameters: tuple[tuple[str, dtypes.Number | None], ...]
    labels: tuple[str, ...] | None
    body: ExpressionTree
    at: Position = field(default=NOWHERE, compare=False)


LabelledStatement = Assignment | Declaration | Import
ComputingStatement = LabelledStatement | MatrixAssignment | MatrixDeclaration | Differentiation
Statement = ComputingStatement | StateDeclaration | Definition

# Macros that aggregate the labels in their brackets, as in mean[j](...); others keep them, as in softmax[j](...).
AGGREGATING_MACROS = frozenset({"mean", "var", "norm", "count", "sumsq", "argmax", "argmin"})


def is_aggregate(call: FunctionCall) -> bool:
    """Whether a call aggregates labels. min and max of two arguments are scalar functions instead."""
    if call.name in AGGREGATING_MACROS or call.name in PICKS or call.name in USER_AGGREGATES:
        return True
    if call.name not in AGGREGATES:
        return False
    return call.labels is not None or len(call.arguments) == 1 or call.name not in FUNCTIONS


def lowercase_labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    """The labels in lower case."""
    return tuple([label.lower() for label in labels])


def written_labels(expression: ExpressionTree) -> Iterator[tuple[str, Position]]:
    """Every label as written, including those in the brackets of aggregates, with its place; not that of bound(j)."""
    match expression:
        case TensorReference(_, labels, _, at) | FunctionCall(_, labels, _, at) if labels:
            yield from ((label, at) for label in labels)
        case IndexedReference():
            yield from ((label, expression.at) for label in expression.labels)
        case RangeExpression(_, label, _, at):
            yield label, at
    if isinstance(expression, FunctionCall):
        for argument in expression.arguments:
            yield from written_labels(argument)


def references(expression: ExpressionTree) -> Iterator[TensorReference | IndexedReference]:
    """The references to tensors in an expression, in order."""
    if isinstance(expression, TensorReference | IndexedReference):
        yield expression
    if isinstance(expression, FunctionCall):
        for argument in expression.arguments:
            yield from references(argument)


def calls(expression: ExpressionTree) -> Iterator[FunctionCall]:
    """The calls of functions and operators in an expression, outer ones first."""
    if isinstance(expression, FunctionCall):
        yield expression
        for argument in expression.arguments:
            yield from calls(argument)


def is_promoted(label: str) -> bool:
    """Whether the user promotes a label, by writing it in upper case."""
    return label[0].isupper()


def call_of(name: str, *arguments: ExpressionTree | float) -> FunctionCall:
    """A call of a function with expressions and numbers as arguments."""
    nodes = (NumberLiteral(argument) if isinstance(argument, int | float) else argument for argument in arguments)
    return FunctionCall(name, None, tuple(nodes))


def free_labels(expression: ExpressionTree) -> Sequence[str]:
    """The labels of all references, in order, except those that an aggregate around them names."""
    labels: list[str] = []
    _collect_free_labels(expression, labels)
    return labels


def _collect_free_labels(expression: ExpressionTree, labels: list[str]) -> None:
    """Append the free labels of an expression to `labels`: a nested expression has no list of its own at each level."""
    match expression:
        case TensorReference() | IndexedReference():
            labels += lowercase_labels(expression.labels)
        case RangeExpression(_, label):
            labels.append(label.lower())
        case FunctionCall(_, written, arguments):
            if not is_aggregate(expression):
                for argument in arguments:
                    _collect_free_labels(argument, labels)
                return
            named = lowercase_labels(written or ())
            inside = [label for argument in arguments for label in free_labels(argument)]
            labels += [label for label in inside if label not in named]
            if expression.name in USER_AGGREGATES:  # a label that counts the numbers of a state
                labels += [label for label in named if label not in inside]


def labels_of(expression: ExpressionTree) -> frozenset[str]:
    """The free labels of an expression."""
    return frozenset(free_labels(expression))
