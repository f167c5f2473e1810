"""Models: operators of ONNX that sum products: MatMul, Gemm and Einsum."""

import string
from collections.abc import Sequence

from sparseeinsum.models.networks.alignment import aligned, combined
from sparseeinsum.models.networks.index_terms import FormulaTerm
from sparseeinsum.models.networks.network_statements import StatementAggregate, write_number
from sparseeinsum.models.networks.network_values import NetworkValue, widest
from sparseeinsum.models.networks.operators.record import NetworkOperator, NodeCall
from sparseeinsum.models.networks.writer import Writer


def contracted(
    writer: Writer, values: Sequence[NetworkValue], letters: Sequence[Sequence[str]], result: Sequence[str]
) -> NetworkValue:
    """The sum of products of values over the letters that the result lacks.

    Args:
        writer: Writes the statement.
        values: The values.
        letters: For each value a letter for each axis; axes with the same letter share their indices.
        result: The letters of the axes of the result.
    """
    values = [value if value.is_plain else writer.stored(value) for value in values]
    places: dict[str, list[tuple[int, int]]] = {}
    for number, own in enumerate(letters):
        for position, letter in enumerate(own):
            places.setdefault(letter, []).append((number, position))
    values, axes = aligned(writer, values, list(places.values()))
    axis_of = dict(zip(places, axes, strict=True))
    aggregated = tuple(factor for letter in places if letter not in result for factor in axis_of[letter])
    term = values[0].term
    for value in values[1:]:
        term = FormulaTerm("{0} * {1}", (term, value.term))
    kind = widest([value.kind for value in values])
    wanted = tuple(axis_of[letter] for letter in result)
    if not aggregated:
        return writer.stored(NetworkValue(wanted, term, kind)) if len(values) > 2 else NetworkValue(wanted, term, kind)
    return writer.computed(wanted, term, kind, StatementAggregate("sum", aggregated))


def _matmul(call: NodeCall, writer: Writer) -> NetworkValue:
    return matrix_product(writer, call.input(0), call.input(1))


def matrix_product(writer: Writer, first: NetworkValue, second: NetworkValue) -> NetworkValue:
    """Numpy's matmul of two values."""
    left, right = len(first.axes), len(second.axes)
    batch = max(left, right) - 2 if max(left, right) > 2 else 0
    names = [f"batch{position}" for position in range(batch)]
    rows, columns = (["row"] if left > 1 else []), (["column"] if right > 1 else [])
    own = [*names[batch - max(left - 2, 0) :], *rows, "inner"]
    other = [*names[batch - max(right - 2, 0) :], "inner", *columns]
    return contracted(writer, [first, second], [own, other], [*names, *rows, *columns])


def _gemm(call: NodeCall, writer: Writer) -> NetworkValue:
    first = ["inner", "row"] if call.attributes.get("transA") else ["row", "inner"]
    second = ["column", "inner"] if call.attributes.get("transB") else ["inner", "column"]
    result = contracted(writer, [call.input(0), call.input(1)], [first, second], ["row", "column"])
    result = _scaled(writer, result, call.attributes.get("alpha", 1.0))
    if not call.has(2):
        return result
    return combined(
        writer, "{0} + {1}", [result, _scaled(writer, call.input(2), call.attributes.get("beta", 1.0))], result.kind
    )


def _scaled(writer: Writer, value: NetworkValue, factor: float) -> NetworkValue:
    return value if factor == 1 else combined(writer, f"{write_number(float(factor))} * {{0}}", [value], value.kind)


def _einsum(call: NodeCall, writer: Writer) -> NetworkValue:
    values = [call.input(position) for position in range(len(call.inputs))]
    equation = str(call.attributes["equation"]).replace(" ", "")
    operands, arrow, result = equation.partition("->")
    spellings = operands.split(",")
    broadcast = max(
        (len(value.axes) - len(text.replace("...", ""))) for value, text in zip(values, spellings, strict=True)
    )
    further = [f"further{position}" for position in range(broadcast)]
    letters = [_letters(text, further, len(value.axes)) for text, value in zip(spellings, values, strict=True)]
    if not arrow:
        once = sorted(letter for letter in string.ascii_letters if operands.count(letter) == 1)
        result = ("..." if "..." in operands else "") + "".join(once)
    return contracted(writer, values, letters, _letters(result, further, None))


def _letters(text: str, further: Sequence[str], rank: int | None) -> list[str]:
    """The letters of an operand of an equation; an ellipsis stands for as many of the further axes as it has."""
    before, dots, after = text.partition("...")
    if not dots:
        return list(text)
    count = len(further) if rank is None else rank - len(before) - len(after)
    return [*before, *further[len(further) - count :], *after]


OPERATORS = (
    NetworkOperator("Einsum", _einsum),
    NetworkOperator("Gemm", _gemm),
    NetworkOperator("MatMul", _matmul),
)
