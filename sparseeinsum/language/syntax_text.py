"""Language: writes syntax trees as program text."""

from sparseeinsum.language.affine_indices import Limit
from sparseeinsum.language.scalar import write, write_number
from sparseeinsum.language.syntax import (
    AppliedFunction,
    Assignment,
    BoundExpression,
    ExpressionTree,
    FunctionCall,
    Import,
    IndexedReference,
    LabelledStatement,
    MatrixName,
    NumberLiteral,
    RangeExpression,
    TensorReference,
)
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS


def write_statement(statement: LabelledStatement) -> str:
    """A statement as program text."""
    if isinstance(statement, Assignment):
        limits = write_limits(statement.limits)
        return f"{write_expression(statement.target)} = {write_expression(statement.value)}{limits}"
    axes = ", ".join(name if bound is None else f"{name}: {bound}" for name, bound in statement.axes)
    origin = _write_origin(statement) if isinstance(statement, Import) else ""
    fill = "" if statement.fill is None else f" fill {write_number(statement.fill)}"
    dtype = "" if statement.dtype is None else f" dtype {statement.dtype}"
    return f"tensor {statement.tensor}[{axes}]{origin}{fill}{dtype}"


def _write_origin(statement: Import) -> str:
    """The clauses from, index and value of an import."""
    is_by_axis = statement.index == tuple(name for name, _ in statement.axes)
    index = "" if is_by_axis else f" index {', '.join(map(_quoted, statement.index))}"
    value = "" if statement.value is None else f" value {_quoted(statement.value)}"
    return f" from {_quoted(statement.relation)}{index}{value}"


def _quoted(text: str) -> str:
    return f"'{text}'" if '"' in text else f'"{text}"'


def write_expression(expression: ExpressionTree) -> str:
    """An expression as program text, with as few parentheses as possible."""
    leaves: list[str] = []
    return write(_as_scalar(expression, leaves), leaves)


def _as_scalar(expression: ExpressionTree, leaves: list[str]) -> Scalar:
    """The expression of operators alone: everything else becomes an operand, and its text is added to `leaves`."""
    match expression:
        case NumberLiteral(value):
            return Literal(value)
        case FunctionCall(name, None, arguments) if name in FUNCTIONS and len(arguments) == FUNCTIONS[name].operands:
            return Call(name, tuple(_as_scalar(argument, leaves) for argument in arguments))
        case _:
            leaves.append(_write_leaf(expression))
            return Operand(len(leaves) - 1)


def _write_leaf(expression: ExpressionTree) -> str:
    """The text of an expression that is not an operator."""
    match expression:
        case TensorReference(tensor, indices, tiles) | IndexedReference(tensor, indices, tiles):
            sizes = {label: f":{tile}" for label, tile in tiles}
            written = (f"{index}{sizes.get(str(index).lower(), '')}" for index in indices)
            return f"{tensor}[{', '.join(written)}]"
        case BoundExpression(name, axis):
            return f"bound({name})" if axis is None else f"bound({name}, {axis})"
        case RangeExpression(kind, label, bound):
            return write_range(kind, label, bound if bound is None or isinstance(bound, int) else _write_leaf(bound))
        case FunctionCall(name, labels, arguments):
            named = f"[{', '.join(labels)}]" if labels else ""
            return f"{name}{named}({', '.join(write_expression(argument) for argument in arguments)})"
        case NumberLiteral(value):
            return write_number(value)
        case AppliedFunction(name, arguments, indices):
            texts = ", ".join(write_expression(argument) for argument in arguments)
            return f"{name}({texts})[{', '.join(map(str, indices))}]"
        case MatrixName(name):
            return name


def write_limits(limits: tuple[Limit, ...]) -> str:
    """The clause of a statement that bounds its labels, such as ` for j < 3`; empty if there are none."""
    bounds = (
        f"{limit.index} < {limit.bound if isinstance(limit.bound, int) else write(limit.bound)}" for limit in limits
    )
    return f" for {', '.join(bounds)}" if limits else ""


def write_range(kind: str, label: str, bound: int | str | None) -> str:
    """A call of index or ones as program text, such as index(k: 10)."""
    return f"{kind}({label})" if bound is None else f"{kind}({label}: {bound})"
