"""Models: writes a statement of program text for a term."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparseeinsum.language.affine_indices import AffineIndex
from sparseeinsum.models.networks.index_terms import (
    ConstantTerm,
    FormulaTerm,
    IndexTerm,
    IndexValue,
    Ones,
    Read,
    labels_of,
    leaves,
    plain,
)
from sparseeinsum.models.networks.network_values import SizedLabel
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import Number

# Labels in statements, in order; o and l look like digits.
_LETTERS = "ijkmnpqrstuvwxyzabcdefgh"


@dataclass(frozen=True, slots=True)
class NetworkStatement:
    """A statement of a program.

    Attributes:
        target: The tensor that it computes.
        text: The statement, with the declaration of the target if it needs one.
        tensors: The tensors that it reads.
    """

    target: str
    text: str
    tensors: frozenset[str]


@dataclass(frozen=True, slots=True)
class StatementAggregate:
    """How a statement aggregates.

    Attributes:
        function: An aggregate, a scan or a macro of the language.
        factors: The labels that it applies to.
        keeps: Whether the target has these labels, as for scans and softmax.
    """

    function: str
    factors: tuple[SizedLabel, ...]
    keeps: bool = False


def write_statement(
    target: str,
    axes: Sequence[SizedLabel],
    term: IndexTerm,
    tensors: frozenset[str],
    aggregation: StatementAggregate | None = None,
) -> NetworkStatement:
    """The statement that computes a tensor.

    Args:
        target: The name of the tensor.
        axes: A factor for every axis.
        term: The term; it has a tensor.
        tensors: The tensors in the term.
        aggregation: What is done with the term.
    """
    aggregated = () if aggregation is None or aggregation.keeps else aggregation.factors
    factors = (*axes, *aggregated)
    names = dict(zip((factor.label for factor in factors), _label_names(), strict=False))
    sizes = {factor.label: factor.size for factor in factors}
    writing = _Writing(names, sizes)
    labels = ", ".join(names[factor.label] for factor in axes)
    text = writing.write(term)
    if aggregation is not None:
        named = ", ".join(names[factor.label] for factor in aggregation.factors)
        brackets = "" if aggregation.function in AGGREGATES else f"[{named}]"
        text = f"{aggregation.function}{brackets}({_without_parentheses(text)})"
    unbounded = [label for label in sizes if not _has_own_bound(label, sizes[label], term)]
    statement = f"{target}[{labels}] = {_without_parentheses(text)}"
    limits = [f"{names[factor.label]} < {factor.size}" for factor in aggregated if factor.label in unbounded]
    if limits:
        statement += f" for {', '.join(limits)}"
    if any(factor.label in unbounded for factor in axes):
        declared = ", ".join(f"{names[factor.label]}: {factor.size}" for factor in axes)
        statement = f"tensor {target}[{declared}]\n{statement}"
    return NetworkStatement(target, statement, tensors)


def write_number(value: Number) -> str:
    """A number as program text, in parentheses if it is negative."""
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return f"({text})" if text.startswith("-") else text


@dataclass(frozen=True, slots=True)
class _Writing:
    """Writes terms with the names of labels, whose sizes it knows."""

    names: Mapping[str, str]
    sizes: Mapping[str, int]

    def write(self, term: IndexTerm) -> str:
        """The term, in parentheses if it is a formula with an operator."""
        match term:
            case ConstantTerm(value):
                return write_number(value)
            case Ones(labels):
                return " and ".join(f"ones({self.names[label]}: {self.sizes[label]})" for label in labels)
            case IndexValue(index):
                return self._index_value(index)
            case Read(tensor, indices, shape):
                written = (self._index(index, bound) for index, bound in zip(indices, shape, strict=True))
                return f"{tensor}[{', '.join(written)}]"
            case FormulaTerm(formula, arguments):
                text = _filled(formula, [self.write(argument) for argument in arguments])
                return text if _is_call(text) else f"({text})"

    def _index(self, index: AffineIndex, bound: int) -> str:
        if len(index.terms) == 1 and index == plain(index.labels[0]) and self.sizes[index.labels[0]] == bound:
            return self.names[index.labels[0]]
        terms = tuple((self.names[label], times) for label, times in index.terms)
        return str(AffineIndex(terms, index.offset))

    def _index_value(self, index: AffineIndex) -> str:
        parts = [
            f"{f'{times} * ' if times != 1 else ''}index({self.names[label]}: {self.sizes[label]})"
            for label, times in index.terms
        ]
        if index.offset or not parts:
            parts.append(str(index.offset))
        return parts[0] if len(parts) == 1 and index.terms and index.terms[0][1] == 1 else f"({' + '.join(parts)})"


def _filled(formula: str, texts: Sequence[str]) -> str:
    """The formula with texts in place of {0}, {1}, ...; arguments of a call need no parentheses around them."""

    def text_of(place: re.Match[str]) -> str:
        before, after = formula[: place.start()].rstrip()[-1:], formula[place.end() :].lstrip()[:1]
        text = texts[int(place.group(1))]
        is_argument = before in ("(", ",") and after in (")", ",")
        return _without_parentheses(text) if is_argument else text

    return re.sub(r"\{(\d)\}", text_of, formula)


def _label_names() -> Iterator[str]:
    """Names of labels: letters, then letters with numbers."""
    yield from _LETTERS
    yield from (f"i{number}" for number in itertools.count())


def _has_own_bound(label: str, size: int, term: IndexTerm) -> bool:
    """Whether the term bounds a label to its size: by a tensor that is read at the mere label, and not also shifted."""
    whole: set[str] = set()
    other: set[str] = set()
    for leaf in leaves(term):
        match leaf:
            case Read(tensor, indices, shape):
                for index, bound in zip(indices, shape, strict=True):
                    if label in index.labels:
                        (whole if index == plain(label) and bound == size else other).add(tensor)
            case Ones() | IndexValue() if label in labels_of(leaf):
                return True
    return bool(whole - other)


def _is_call(text: str) -> bool:
    """Whether a text is a name with arguments in parentheses, so that it needs no further ones."""
    name, parenthesis, rest = text.partition("(")
    return bool(parenthesis) and name.replace("_", "a").isalnum() and _closes_last(f"({rest}")


def _without_parentheses(text: str) -> str:
    return text[1:-1] if text.startswith("(") and _closes_last(text) else text


def _closes_last(text: str) -> bool:
    """Whether the parenthesis at the beginning is closed by the last character."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return position == len(text) - 1
    return False
