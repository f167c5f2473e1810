"""Models: operators of ONNX that reduce axes, or normalise and accumulate along them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sparseeinsum.errors import SemanticsError
from sparseeinsum.models.networks.alignment import combined
from sparseeinsum.models.networks.index_terms import ConstantTerm, FormulaTerm, IndexValue, plain
from sparseeinsum.models.networks.merging import merged
from sparseeinsum.models.networks.movements import padded, taken
from sparseeinsum.models.networks.network_statements import StatementAggregate
from sparseeinsum.models.networks.network_values import NetworkValue, axis_size
from sparseeinsum.models.networks.operators.record import NetworkOperator, NodeCall
from sparseeinsum.models.networks.writer import Writer


def reduced(writer: Writer, value: NetworkValue, axes: Sequence[int], function: str, keeps: bool) -> NetworkValue:
    """The value aggregated over some axes.

    Args:
        writer: Takes the statement.
        value: The value.
        axes: Positions of the axes.
        function: The name of the aggregate.
        keeps: Whether the axes keep one index each.
    """
    factors = tuple(factor for axis in axes for factor in value.axes[axis])
    remaining = tuple(() if position in axes else axis for position, axis in enumerate(value.axes))
    result = value
    if factors:
        result = writer.computed(remaining, value.term, value.kind, StatementAggregate(function, factors))
    if keeps:
        return replace(result, axes=remaining)
    return replace(result, axes=tuple(axis for position, axis in enumerate(remaining) if position not in axes))


def mean(writer: Writer, value: NetworkValue, axes: Sequence[int], keeps: bool = True) -> NetworkValue:
    """The mean of the value over some axes."""
    count = 1
    for axis in axes:
        count *= axis_size(value.axes[axis])
    return combined(writer, f"{{0}} / {count}", [reduced(writer, value, axes, "sum", keeps)], "float")


def centred_and_scaled(
    writer: Writer, value: NetworkValue, axes: Sequence[int], epsilon: float
) -> tuple[NetworkValue, NetworkValue, NetworkValue]:
    """The value minus its mean, divided by its deviation; the mean; and one divided by the deviation.

    Args:
        writer: Takes the statements.
        value: The value.
        axes: Positions of the axes over which mean and deviation are taken.
        epsilon: A number that is added to the variance before its root is taken.
    """
    value = writer.stored(value)
    average = mean(writer, value, axes)
    centred = writer.stored(combined(writer, "{0} - {1}", [value, average], "float"))
    variance = mean(writer, combined(writer, "{0} * {0}", [centred], "float"), axes)
    inverse = writer.stored(combined(writer, f"1 / sqrt({{0}} + {epsilon!r})", [variance], "float"))
    return combined(writer, "{0} * {1}", [centred, inverse], "float"), average, inverse


_OF_TRUTH = {"max": "any", "min": "all"}


@dataclass(frozen=True, slots=True)
class _Reduction:
    """Writes a reduction.

    Attributes:
        function: The aggregate of the language.
        before: The formula whose values it aggregates.
        after: The formula of the aggregate; {count} is the number of values.
        is_float: Whether its values are never whole numbers.
    """

    function: str
    before: str = "{0}"
    after: str = "{0}"
    is_float: bool = False

    def __call__(self, call: NodeCall, writer: Writer) -> NetworkValue:
        """The reduction of the first input of a call."""
        value = call.input(0)
        axes = _axes(call, len(value.axes))
        if axes is None:
            return value
        kind = "float" if self.is_float else value.kind
        function = _OF_TRUTH.get(self.function, self.function) if value.kind == "bool" else self.function
        if self.before != "{0}":
            value = combined(writer, self.before, [value], kind)
        count = 1
        for axis in axes:
            count *= axis_size(value.axes[axis])
        result = reduced(writer, replace(value, kind=kind), axes, function, bool(call.attributes.get("keepdims", 1)))
        if self.after == "{0}":
            return result
        return combined(writer, self.after.replace("{count}", str(count)), [result], kind)


def _axes(call: NodeCall, rank: int) -> list[int] | None:
    """The axes that a call reduces, counted from 0; None if it reduces nothing."""
    axes = call.numbers("axes", 1, "axes")
    if not axes:
        return None if call.attributes.get("noop_with_empty_axes") else list(range(rank))
    return sorted({axis % rank for axis in axes})


def _softmax(name: str) -> Callable[[NodeCall, Writer], NetworkValue]:
    def write(call: NodeCall, writer: Writer) -> NetworkValue:
        value = writer.stored(call.input(0))
        rank = len(value.axes)
        old = call.version < 13  # whose axis begins those that count as one
        axis = call.axis(1 if old else -1, rank)
        axes = range(axis, rank) if old else (axis,)
        factors = tuple(factor for position in axes for factor in value.axes[position])
        if not factors:
            return combined(writer, "{0} * 0" if name == "log_softmax" else "{0} * 0 + 1", [value], "float")
        return writer.computed(value.axes, value.term, "float", StatementAggregate(name, factors, keeps=True))

    return write


def _extreme_index(name: str) -> Callable[[NodeCall, Writer], NetworkValue]:
    def write(call: NodeCall, writer: Writer) -> NetworkValue:
        value = call.input(0)
        axis = call.axis(0, len(value.axes))
        size = axis_size(value.axes[axis])
        is_last = bool(call.attributes.get("select_last_index"))
        if is_last:
            value = taken(writer, value, axis, list(reversed(range(size))))
        value = writer.stored(merged(writer, value, axis))
        factors = value.axes[axis]
        remaining = tuple(() if position == axis else other for position, other in enumerate(value.axes))
        result = NetworkValue(remaining, ConstantTerm(0), "int")
        if factors:
            result = writer.computed(remaining, value.term, "int", StatementAggregate(name, factors))
        if is_last:
            result = combined(writer, f"{size - 1} - {{0}}", [result], "int")
        if not call.attributes.get("keepdims", 1):
            result = replace(result, axes=tuple(kept for position, kept in enumerate(result.axes) if position != axis))
        return result

    return write


def _cumulative(scan: str, first: int) -> Callable[[NodeCall, Writer], NetworkValue]:
    """A scan; `first` is the value of no elements."""

    def write(call: NodeCall, writer: Writer) -> NetworkValue:
        return _scanned(call, writer, scan, first)

    return write


def _scanned(call: NodeCall, writer: Writer, scan: str, first: int) -> NetworkValue:
    value = call.input(0)
    axis = int(call.array(1, "axis").item()) % len(value.axes)
    is_reverse, size = bool(call.attributes.get("reverse")), axis_size(value.axes[axis])
    backwards = list(reversed(range(size)))
    value = merged(writer, value, axis)
    if is_reverse:
        value = taken(writer, value, axis, backwards)
    value = writer.stored(value)
    if not value.axes[axis]:
        exclusive = call.attributes.get("exclusive")
        return combined(writer, f"{{0}} * 0 + {first}", [value], value.kind) if exclusive else value
    result = writer.computed(value.axes, value.term, value.kind, StatementAggregate(scan, value.axes[axis], keeps=True))
    if call.attributes.get("exclusive"):
        result = padded(writer, taken(writer, result, axis, range(size - 1)), axis, 1, 0, ConstantTerm(first))
    return taken(writer, result, axis, backwards) if is_reverse else result


def _hardmax(call: NodeCall, writer: Writer) -> NetworkValue:
    """1 at the first greatest element along an axis, else 0."""
    value = call.input(0)
    rank = len(value.axes)
    place = call.axis(1 if call.version < 13 else -1, rank)
    if call.version < 13 and place != rank - 1:
        raise SemanticsError("it is of several axes, which is not supported")
    value = writer.stored(merged(writer, value, place))
    if not value.axes[place]:
        return combined(writer, "{0} * 0 + 1", [value], "float")
    remaining = tuple(() if position == place else axis for position, axis in enumerate(value.axes))
    greatest = writer.computed(remaining, value.term, "int", StatementAggregate("argmax", value.axes[place]))
    index = IndexValue(plain(value.axes[place][0].label))
    return NetworkValue(value.axes, FormulaTerm("({0} == {1}) * 1.0", (index, greatest.term)), "float", writer.title)


def _power_normalization(call: NodeCall, writer: Writer) -> NetworkValue:
    value = writer.stored(call.input(0))
    axis = call.axis(-1, len(value.axes))
    if call.attributes.get("p", 2) == 1:
        size = reduced(writer, combined(writer, "abs({0})", [value], "float"), [axis], "sum", keeps=True)
    else:
        squares = combined(writer, "{0} * {0}", [value], "float")
        size = combined(writer, "sqrt({0})", [reduced(writer, squares, [axis], "sum", keeps=True)], "float")
    size = writer.stored(size)
    return combined(writer, "where({1} == 0, 0, {0} / {1})", [value, size], "float")


def _layer_normalization(call: NodeCall, writer: Writer) -> Sequence[NetworkValue]:
    value = call.input(0)
    rank = len(value.axes)
    axes = range(call.axis(-1, rank), rank)
    result, average, inverse = centred_and_scaled(writer, value, axes, float(call.attributes.get("epsilon", 1e-5)))
    return _scaled(call, writer, result, 1), average, inverse


def _scaled(call: NodeCall, writer: Writer, value: NetworkValue, position: int) -> NetworkValue:
    """The value times an input, plus the next one, if they are there."""
    value = combined(writer, "{0} * {1}", [value, call.input(position)], "float")
    if call.has(position + 1):
        value = combined(writer, "{0} + {1}", [value, call.input(position + 1)], "float")
    return value


def _batch_normalization(call: NodeCall, writer: Writer) -> NetworkValue:
    call.refuse("spatial", 1)
    if call.attributes.get("training_mode") or call.outputs > 1 or call.attributes.get("is_test") == 0:
        raise SemanticsError("it normalises by the batch, as in training")
    value = call.input(0)
    scale, bias, average, variance = (by_channel(call.input(position), value) for position in range(1, 5))
    epsilon = float(call.attributes.get("epsilon", 1e-5))
    factor = combined(writer, f"{{0}} / sqrt({{1}} + {epsilon!r})", [scale, variance], "float")
    centred = combined(writer, "{0} - {1}", [value, average], "float")
    return combined(writer, "{0} + {1}", [combined(writer, "{0} * {1}", [centred, factor], "float"), bias], "float")


def by_channel(vector: NetworkValue, like: NetworkValue) -> NetworkValue:
    """A vector with a number for each channel, the second axis of another value, with as many axes as that."""
    return replace(vector, axes=((), vector.axes[0], *[()] * (len(like.axes) - 2)))


def _instance_normalization(call: NodeCall, writer: Writer) -> NetworkValue:
    value = call.input(0)
    epsilon = float(call.attributes.get("epsilon", 1e-5))
    result, _, _ = centred_and_scaled(writer, value, range(2, len(value.axes)), epsilon)
    scale, bias = (by_channel(call.input(position), value) for position in (1, 2))
    return combined(writer, "{0} * {1} + {2}", [result, scale, bias], "float")


_REDUCTIONS = {
    "ReduceSum": _Reduction("sum"),
    "ReduceMean": _Reduction("sum", after="{0} / {count}", is_float=True),
    "ReduceMax": _Reduction("max"),
    "ReduceMin": _Reduction("min"),
    "ReduceProd": _Reduction("prod"),
    "ReduceL1": _Reduction("sum", "abs({0})"),
    "ReduceL2": _Reduction("sum", "{0} * {0}", "sqrt({0})", is_float=True),
    "ReduceSumSquare": _Reduction("sum", "{0} * {0}"),
    "ReduceLogSum": _Reduction("sum", after="log({0})", is_float=True),
    "ReduceLogSumExp": _Reduction("logsumexp", is_float=True),
}

OPERATORS = (
    *(NetworkOperator(name, reduction) for name, reduction in _REDUCTIONS.items()),
    NetworkOperator("ArgMax", _extreme_index("argmax")),
    NetworkOperator("ArgMin", _extreme_index("argmin")),
    NetworkOperator("BatchNormalization", _batch_normalization),
    NetworkOperator("CumProd", _cumulative("cumprod", 1)),
    NetworkOperator("CumSum", _cumulative("cumsum", 0)),
    NetworkOperator("Hardmax", _hardmax),
    NetworkOperator("InstanceNormalization", _instance_normalization),
    NetworkOperator("LayerNormalization", _layer_normalization),
    NetworkOperator("LpNormalization", _power_normalization),
    NetworkOperator("LogSoftmax", _softmax("log_softmax")),
    NetworkOperator("Softmax", _softmax("softmax")),
)
