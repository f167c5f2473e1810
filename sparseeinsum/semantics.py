"""Semantics: an EinGraph in, for every EinSum what must be stored for an exact result out.

A tuple that is not stored holds the fill, which is 0. Leaving such tuples out of a join is exact only where they
contribute nothing: where `join` of the fill and anything finite is what `aggregate` ignores. That is decided by
simplifying `join`, not from a list of names. Elsewhere what is absent must be filled in.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from enum import StrEnum

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.scalar import Literal, evaluate, keeps_finite, substitute
from sparseeinsum.language.tensors import Tensor

# What an aggregate ignores. Where a result has no tuple it holds 0, so only sums may leave anything out.
_IGNORED = {"sum": 0.0, None: 0.0}


class JoinKind(StrEnum):
    """Which tuples of two operands a join keeps; for those without a partner the other operand is filled in."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Absence:
    """How an EinSum under given keys deals with absent tuples.

    Attributes:
        join: Which tuples the join keeps; INNER for one operand.
        dense: For every operand, whether all its indices must be made present before.
    """

    join: JoinKind
    dense: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What is exact for one EinSum.

    Attributes:
        matters: For every operand, whether an absent tuple of it contributes something.
        both_absent_matter: Whether indices absent in all operands contribute something.
        is_finite: Whether the result has no NaN and no infinity, as far as inputs and functions tell.
        reason: Why something absent contributes; empty where nothing does.
    """

    matters: tuple[bool, ...]
    both_absent_matter: bool
    is_finite: bool
    reason: str

    def absence(self, keys: tuple[Set[str], ...]) -> Absence:
        """The cheapest exact way to deal with absent tuples, given the promoted labels of every operand."""
        if len(self.matters) == 2 and any(self.matters) and not self.both_absent_matter:
            kind = self._outer_join(*keys)
            if kind is not None:
                return Absence(kind, (False, False))
        return Absence(JoinKind.INNER, self.matters)

    def _outer_join(self, keys_u: Set[str], keys_v: Set[str]) -> JoinKind | None:
        """A join that fills in what one tuple lacks; None where a tuple may lack several partners."""
        match self.matters:
            case (True, True):
                return JoinKind.FULL if keys_u == keys_v and keys_u else None
            case (False, True):
                return JoinKind.LEFT if keys_v <= keys_u and keys_u else None
            case _:
                return JoinKind.RIGHT if keys_u <= keys_v and keys_v else None


def evaluate_exactly(graph: EinGraph, finite: Mapping[str, bool]) -> dict[str, Evaluation]:
    """Decide for every EinSum what an exact result needs.

    Args:
        graph: The EinSums, in topological order.
        finite: For every input tensor, whether it has no NaN and no infinity.

    Returns:
        Evaluations by the name of the tensor computed.
    """
    known = dict(finite)
    evaluations = {}
    for einsum in graph.einsums:
        evaluation = _evaluation(einsum, graph.tensors, [known[operand.tensor] for operand in einsum.operands])
        evaluations[einsum.output.tensor] = evaluation
        known[einsum.output.tensor] = evaluation.is_finite
    return evaluations


def _evaluation(einsum: EinSum, tensors: Mapping[str, Tensor], finite: list[bool]) -> Evaluation:
    fills = [tensors[operand.tensor].fill for operand in einsum.operands]
    matters = []
    for index, fill in enumerate(fills):
        others_finite = all(finite[:index] + finite[index + 1 :])
        matters.append(not others_finite or not _is_ignored(einsum, substitute(einsum.join, index, fill)))
    both = not _is_ignored(einsum, Literal(float(evaluate(einsum.join, fills))))
    is_finite = all(finite) and keeps_finite(einsum.join)
    return Evaluation(tuple(matters), both, is_finite, _reason(einsum, matters, finite))


def _is_ignored(einsum: EinSum, value: object) -> bool:
    return einsum.aggregate in _IGNORED and value == Literal(_IGNORED[einsum.aggregate])


def _reason(einsum: EinSum, matters: list[bool], finite: list[bool]) -> str:
    if not any(matters):
        return ""
    if einsum.aggregate not in _IGNORED:
        return f"{einsum.aggregate} counts an absent value as 0"
    if not all(finite):
        return "an operand may hold NaN or infinity, which 0 does not cancel"
    names = [operand.tensor for operand, counts in zip(einsum.operands, matters, strict=True) if counts]
    return f"where {' or '.join(names)} is absent the expression is not 0"
