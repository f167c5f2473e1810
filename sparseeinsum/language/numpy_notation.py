"""Language: numpy's einsum notation, as in 'ij,jk->ik', in; a Program out. Here I and i are two labels."""

from collections import Counter

from sparseeinsum.errors import ParseError, SemanticsError
from sparseeinsum.language.eingraph import EinSum, Program, Reference
from sparseeinsum.language.scalar import AGGREGATES, FUNCTIONS, PRODUCT, Call, Operand, Scalar

OPERAND_NAMES = ("u", "v")
RESULT_NAME = "w"


def read_subscripts(subscripts: str, operands: int, join: str = "*", aggregate: str = "sum") -> Program:
    """A Program that computes `subscripts` of tensors named u and v into w.

    Args:
        subscripts: As in numpy.einsum; without `->` the result has the labels that stand once, sorted.
        operands: How many operands there are.
        join: Operator between two operands: one of + - * /.
        aggregate: What folds the labels that the result lacks.

    Raises:
        ParseError: The subscripts make no sense.
        SemanticsError: More than two operands, or an ellipsis: not supported yet.
    """
    text = subscripts.replace(" ", "")
    if "." in text:
        raise SemanticsError("an ellipsis in subscripts is not supported yet; write every label")
    if operands > len(OPERAND_NAMES):
        raise SemanticsError(f"einsum of {operands} operands is not supported yet; contract two at a time")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if len(terms) != operands:
        problem = f"the subscripts describe {len(terms)} operands, but {operands} were given"
        raise ParseError(problem, subscripts, 1, 1)
    _check_letters(subscripts)
    if not arrow:
        counts = Counter("".join(terms))
        output = "".join(sorted(label for label, count in counts.items() if count == 1))
    _check_output(subscripts, terms, output)
    names = _label_names("".join(terms))
    references = tuple(
        Reference(name, tuple(names[label] for label in term)) for name, term in zip(OPERAND_NAMES, terms, strict=False)
    )
    result = Reference(RESULT_NAME, tuple(names[label] for label in output))
    is_reduction = any(label not in output for label in "".join(terms))
    einsum = EinSum(result, references, _join(join, operands), _aggregate(aggregate) if is_reduction else None)
    return Program((einsum,), outputs=(RESULT_NAME,))


def _check_letters(subscripts: str) -> None:
    for position, character in enumerate(subscripts):
        if not character.isalpha() and character not in " ,->":
            raise ParseError(f"{character!r} is no label; labels are letters", subscripts, 1, position + 1)


def _check_output(subscripts: str, terms: list[str], output: str) -> None:
    at = subscripts.find("->") + 3
    for label in output:
        if label not in "".join(terms):
            raise ParseError(f"label {label} of the result is in no operand", subscripts, 1, at)
        if output.count(label) > 1:
            raise ParseError(f"label {label} stands twice in the result", subscripts, 1, at)
        if label in "->,":
            raise ParseError("the result cannot be read; write subscripts as in 'ij,jk->ik'", subscripts, 1, at)


def _label_names(labels: str) -> dict[str, str]:
    """A label name for each letter; names differ also without case."""
    names: dict[str, str] = {}
    for label in dict.fromkeys(labels):
        name = label.lower()
        names[label] = name if name not in names.values() else f"{name}_{len(names)}"
    return names


def _join(join: str, operands: int) -> Scalar:
    if operands == 1:
        return Operand(0)
    for name, function in FUNCTIONS.items():
        if function.symbol == join and function.operands == 2:
            return PRODUCT if name == "mul" else Call(name, (Operand(0), Operand(1)))
    symbols = [function.symbol for function in FUNCTIONS.values() if function.operands == 2 and function.symbol]
    raise SemanticsError(f"join {join!r} is none of {' '.join(symbols)}")


def _aggregate(aggregate: str) -> str:
    if aggregate not in AGGREGATES:
        raise SemanticsError(f"agg {aggregate!r} is none of {', '.join(AGGREGATES)}")
    return aggregate
