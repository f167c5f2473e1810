"""Language: lowers an expression without aggregates to the join of an EinSum and its operands."""

from sparseeinsum.language.eingraph import Reference
from sparseeinsum.language.macros import MACROS
from sparseeinsum.language.names import ProgramNames
from sparseeinsum.language.random_functions import RANDOM_FUNCTIONS
from sparseeinsum.language.syntax import (
    AppliedFunction,
    BoundExpression,
    ExpressionTree,
    FunctionCall,
    IndexedReference,
    MatrixName,
    NumberLiteral,
    RangeExpression,
    TensorReference,
    labels_of,
    lowercase_labels,
)
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.expressions import AxisBound, Bound, Call, Literal, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.scans import SCANS
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES
from sparseeinsum.presentation.spelling import did_you_mean

_INT64 = range(-(2**63), 2**63)


class JoinLowering:
    """Lowers the expression of one EinSum.

    Attributes:
        references: The operands, in order of appearance; the same tensor with the same labels is one operand.
        join: The scalar expression of these operands.
    """

    def __init__(self, names: ProgramNames, target: str, expression: ExpressionTree) -> None:
        self._numbers: dict[Reference, int] = {}
        self._names = names
        self._target = target
        self._labels = labels_of(expression)
        self.join = self._lower(expression)
        self.references = list(self._numbers)

    def _lower(self, expression: ExpressionTree) -> Scalar:
        """The scalar expression of a syntax tree; adds its references to the operands."""
        match expression:
            case NumberLiteral():
                return self._literal(expression)
            case TensorReference(name, labels, _, at):
                self._names.check_read(name, at, self._target)
                return self._operand(Reference(name, lowercase_labels(labels)))
            case RangeExpression(kind, label, bound):
                size = bound if isinstance(bound, int) else self._axis_bound(bound)
                generated = self._names.generate(kind, label.lower(), size)
                return self._operand(Reference(generated.name, (generated.label,)))
            case BoundExpression(_, _, label) if label in self._labels:
                assert label is not None
                return Bound(label)
            case BoundExpression():
                return self._axis_bound(expression)
            case MatrixName(name) | IndexedReference(name) | AppliedFunction(name):
                raise AssertionError(f"{name} should have labels alone by now")
            case FunctionCall(name, _, arguments):
                self._check_function(expression)
                return Call(name, tuple(self._lower(argument) for argument in arguments))

    def _literal(self, number: NumberLiteral) -> Literal:
        value = number.value
        if isinstance(value, int) and value not in _INT64:
            raise self._names.error(f"{value} is beyond what int64 holds; write {value}.0", number.at)
        return Literal(value)

    def _operand(self, reference: Reference) -> Operand:
        return Operand(self._numbers.setdefault(reference, len(self._numbers)))

    def _axis_bound(self, bound: BoundExpression | None) -> AxisBound:
        assert bound is not None
        assert bound.axis is not None, "labels have tensors by now"
        self._names.check_read(bound.name, bound.at, self._target)
        return AxisBound(bound.name, bound.axis)

    def _check_function(self, call: FunctionCall) -> None:
        check_name(call, self._names)
        function = FUNCTIONS[call.name]
        if call.labels is not None:
            raise self._names.error(f"{call.name} is no aggregate, so it takes no labels in brackets", call.at)
        if len(call.arguments) != function.operands:
            takes = "one argument" if function.operands == 1 else f"{function.operands} arguments"
            raise self._names.error(f"{call.name} takes {takes}, not {len(call.arguments)}", call.at)


def check_name(call: FunctionCall, names: ProgramNames) -> None:
    """Refuse a call of an unknown function.

    Raises:
        ParseError: The function is unknown; the message suggests the nearest known name.
    """
    if call.name not in FUNCTIONS:
        hint = did_you_mean(call.name, _function_names())
        raise names.error(f"there is no function {call.name!r}; {hint}", call.at)


def _function_names() -> list[str]:
    functions = (name for name, function in FUNCTIONS.items() if not function.symbol and name.isidentifier())
    macros = (*MACROS, *RANDOM_FUNCTIONS, "one_hot")
    return list(dict.fromkeys((*AGGREGATES, *USER_AGGREGATES, *functions, *macros, *SCANS, *PICKS)))
