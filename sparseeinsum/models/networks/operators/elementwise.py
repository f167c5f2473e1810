"""Models: operators of ONNX that compute an element from elements: each is a formula of the language."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from sparseeinsum.errors import SemanticsError
from sparseeinsum.models.networks.alignment import combined
from sparseeinsum.models.networks.network_statements import write_number
from sparseeinsum.models.networks.network_values import NetworkValue, widest
from sparseeinsum.models.networks.operators.record import NetworkOperator, NodeCall
from sparseeinsum.models.networks.writer import Writer

# {0}, {1}, ... are the inputs, {alpha} is an attribute.
_NUMBERS = {
    "Abs": "abs({0})",
    "Add": "{0} + {1}",
    "Ceil": "ceil({0})",
    "Floor": "floor({0})",
    "LeakyRelu": "where({0} < 0, {alpha} * {0}, {0})",
    "Mul": "{0} * {1}",
    "Neg": "-{0}",
    "PRelu": "where({0} < 0, {1} * {0}, {0})",
    "Relu": "relu({0})",
    "Round": "round({0})",
    "Shrink": "where({0} < -{lambd}, {0} + {bias}, where({0} > {lambd}, {0} - {bias}, 0))",
    "Sign": "sign({0})",
    "Sub": "{0} - {1}",
    "ThresholdedRelu": "where({0} > {alpha}, {0}, 0)",
}
_FLOATS = {
    "Acos": "acos({0})",
    "Acosh": "log({0} + sqrt({0} * {0} - 1))",
    "Asin": "asin({0})",
    "Asinh": "sign({0}) * log(abs({0}) + sqrt({0} * {0} + 1))",
    "Atan": "atan({0})",
    "Atanh": "0.5 * log((1 + {0}) / (1 - {0}))",
    "Celu": "max({0}, 0) + {alpha} * (exp(min({0}, 0) / {alpha}) - 1)",
    "Cos": "cos({0})",
    "Cosh": "cosh({0})",
    "Elu": "where({0} < 0, {alpha} * (exp(min({0}, 0)) - 1), {0})",
    "Erf": "erf({0})",
    "Exp": "exp({0})",
    "HardSigmoid": "clip({alpha} * {0} + {beta}, 0, 1)",
    "HardSwish": "{0} * clip({0} / 6 + 0.5, 0, 1)",
    "Log": "log({0})",
    "Mish": "{0} * tanh(logaddexp({0}, 0))",
    "Reciprocal": "1 / {0}",
    "Selu": "{gamma} * where({0} > 0, {0}, {alpha} * (exp(min({0}, 0)) - 1))",
    "Sigmoid": "sigmoid({0})",
    "Sin": "sin({0})",
    "Sinh": "sinh({0})",
    "Softplus": "logaddexp({0}, 0)",
    "Softsign": "{0} / (1 + abs({0}))",
    "Sqrt": "sqrt({0})",
    "Tan": "tan({0})",
    "Tanh": "tanh({0})",
}
_TRUTH = {
    "And": "{0} and {1}",
    "Equal": "{0} == {1}",
    "Greater": "{0} > {1}",
    "GreaterOrEqual": "{0} >= {1}",
    "IsNaN": "{0} != {0}",
    "Less": "{0} < {1}",
    "LessOrEqual": "{0} <= {1}",
    "Not": "not {0}",
    "Or": "{0} or {1}",
    "Xor": "{0} != {1}",
}
_FOLDS = {"Max": "max({0}, {1})", "Min": "min({0}, {1})", "Sum": "{0} + {1}"}
TRUNCATED = "sign({0}) * floor(abs({0}))"


@dataclass(frozen=True, slots=True)
class _Formula:
    """Writes a formula.

    Attributes:
        formula: The formula.
        kind: The kind of its values; None if it is that of the inputs.
    """

    formula: str
    kind: str | None = None

    def __call__(self, call: NodeCall, writer: Writer) -> NetworkValue:
        """The value of the formula for the inputs of a call."""
        count = sum(f"{{{position}}}" in self.formula for position in range(2))
        inputs = [call.input(position) for position in range(count)]
        kind = self.kind or widest([value.kind for value in inputs])
        return combined(writer, with_attributes(self.formula, call), inputs, kind)


def with_attributes(formula: str, call: NodeCall) -> str:
    """The formula with numbers in place of the names of attributes."""
    for name, value in call.attributes.items():
        if f"{{{name}}}" in formula:
            formula = formula.replace(f"{{{name}}}", write_number(float(value)))
    return formula


def cast(writer: Writer, value: NetworkValue, kind: str) -> NetworkValue:
    """The value as numbers of another kind; a fraction is cut off, and what is not 0 is true."""
    if value.kind == kind:
        return value
    formulas = {("float", "bool"): "{0} != 0", ("int", "bool"): "{0} != 0", ("float", "int"): TRUNCATED}
    default = "{0} * 1.0" if kind == "float" else "{0} * 1"
    return combined(writer, formulas.get((value.kind, kind), default), [value], kind)


def _fold(formula: str) -> Callable[[NodeCall, Writer], NetworkValue]:
    def write(call: NodeCall, writer: Writer) -> NetworkValue:
        def join(first: NetworkValue, second: NetworkValue) -> NetworkValue:
            return combined(writer, formula, [first, second], widest([first.kind, second.kind]))

        return reduce(join, (call.input(position) for position in range(len(call.inputs))))

    return write


def _mean(call: NodeCall, writer: Writer) -> NetworkValue:
    return combined(writer, f"{{0}} / {len(call.inputs)}", [_fold("{0} + {1}")(call, writer)], "float")


def _divide(call: NodeCall, writer: Writer) -> NetworkValue:
    """Whole numbers are divided towards 0."""
    inputs = [call.input(0), call.input(1)]
    if "float" in (inputs[0].kind, inputs[1].kind):
        return combined(writer, "{0} / {1}", inputs, "float")
    return combined(writer, "sign({0}) * sign({1}) * floor(abs({0}) / abs({1}))", inputs, "int")


def _remainder(call: NodeCall, writer: Writer) -> NetworkValue:
    inputs = [call.input(0), call.input(1)]
    formula = "sign({0}) * mod(abs({0}), abs({1}))" if call.attributes.get("fmod") else "mod({0}, {1})"
    return combined(writer, formula, inputs, widest([value.kind for value in inputs]))


def _power(call: NodeCall, writer: Writer) -> NetworkValue:
    base, exponent = call.input(0), call.input(1)
    power = combined(writer, "{0} ^ {1}", [base, exponent], widest([base.kind, exponent.kind]))
    return cast(writer, power, base.kind)


def _clip(call: NodeCall, writer: Writer) -> NetworkValue:
    value = call.input(0)
    for position, name, function in ((1, "min", "max"), (2, "max", "min")):
        if call.has(position):
            value = combined(writer, f"{function}({{0}}, {{1}})", [value, call.input(position)], value.kind)
        elif call.attributes.get(name) is not None:
            bound = write_number(float(call.attributes[name]))
            value = combined(writer, f"{function}({{0}}, {bound})", [value], value.kind)
    return value


def _where(call: NodeCall, writer: Writer) -> NetworkValue:
    inputs = [call.input(position) for position in range(3)]
    return combined(writer, "where({0}, {1}, {2})", inputs, widest([inputs[1].kind, inputs[2].kind]))


def _gelu(call: NodeCall, writer: Writer) -> NetworkValue:
    if call.attributes.get("approximate") == "tanh":
        inner = "tanh(0.7978845608028654 * ({0} + 0.044715 * {0} * {0} * {0}))"
    else:
        inner = "erf({0} * 0.7071067811865476)"
    return combined(writer, f"0.5 * {{0}} * (1 + {inner})", [call.input(0)], "float")


def _is_infinite(call: NodeCall, writer: Writer) -> NetworkValue:
    signs = [
        text
        for name, text in (("detect_positive", "{0} == inf"), ("detect_negative", "{0} == -inf"))
        if call.attributes.get(name, 1)
    ]
    return combined(writer, " or ".join(signs) or "{0} != {0} and {0} == {0}", [call.input(0)], "bool")


def _dropout(call: NodeCall, writer: Writer) -> NetworkValue:
    training = call.arrays[2] if len(call.arrays) > 2 else None
    if call.has(2) and (training is None or bool(training)):
        raise SemanticsError("it drops values at random, as in training")
    if call.outputs > 1:
        raise SemanticsError("its mask is not supported")
    return call.input(0)


# The kinds of ONNX's dtypes, by their numbers in TensorProto.
_KIND_OF_DTYPE = {1: "float", 11: "float", 10: "float", 16: "float", 6: "int", 7: "int", 9: "bool"}


def _cast(call: NodeCall, writer: Writer) -> NetworkValue:
    number = int(call.attributes["to"])
    if number not in _KIND_OF_DTYPE:
        raise SemanticsError(f"it casts to dtype {number} of ONNX, whose overflow is not computed")
    return cast(writer, call.input(0), _KIND_OF_DTYPE[number])


def _cast_like(call: NodeCall, writer: Writer) -> NetworkValue:
    return cast(writer, call.input(0), call.input(1).kind)


def _formulas(formulas: dict[str, str], kind: str | None) -> Sequence[NetworkOperator]:
    return [NetworkOperator(name, _Formula(formula, kind)) for name, formula in formulas.items()]


OPERATORS = (
    *_formulas(_NUMBERS, None),
    *_formulas(_FLOATS, "float"),
    *_formulas(_TRUTH, "bool"),
    *(NetworkOperator(name, _fold(formula)) for name, formula in _FOLDS.items()),
    NetworkOperator("Cast", _cast),
    NetworkOperator("CastLike", _cast_like),
    NetworkOperator("Clip", _clip),
    NetworkOperator("Div", _divide),
    NetworkOperator("Dropout", _dropout),
    NetworkOperator("Gelu", _gelu),
    NetworkOperator("Identity", lambda call, _: call.input(0)),
    NetworkOperator("IsInf", _is_infinite),
    NetworkOperator("Mean", _mean),
    NetworkOperator("Mod", _remainder),
    NetworkOperator("Pow", _power),
    NetworkOperator("Where", _where),
)
