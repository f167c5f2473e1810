"""Rewriting: a formula as it was written and an equal one in; by which laws they are equal out, found by replaying."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sparseeinsum.rewrite.saturation.egraph import LAWS, Limits, are_equal_by
from sparseeinsum.rewrite.saturation.terms import Term
from sparseeinsum.rewrite.saturation.writing import write_term

_LIMITS = Limits(seconds=0.2)


@dataclass(frozen=True)  # no slots: its laws are found once and kept
class Derivation:
    """A formula that a result is computed by in the place of the one that was written.

    Attributes:
        written: The formula as it was written.
        computed: The equal one.
        bounds: Of all labels.
        same: Terms that differ in the labels of their sums alone.
        seconds_written: Expected with the formula as it was written, besides what other results take anyway.
        seconds: The same with the equal one.
    """

    written: Term
    computed: Term
    bounds: Mapping[str, int]
    same: Sequence[tuple[Term, Term]]
    seconds_written: float
    seconds: float

    @property
    def share(self) -> float:
        """The share of the time that it takes."""
        return self.seconds / self.seconds_written

    @property
    def formulas(self) -> tuple[str, str]:
        """Both formulas as text."""
        return write_term(self.written), write_term(self.computed)

    @cached_property
    def laws(self) -> Sequence[str]:
        """Laws by which both formulas are equal, all of them needed; none where to find them takes too long."""
        laws = list(LAWS)
        if not self._are_equal_by(laws):
            return []
        for law in LAWS:
            rest = [other for other in laws if other != law]
            if self._are_equal_by(rest):
                laws = rest
        return [LAWS[law] for law in laws]

    def _are_equal_by(self, laws: Sequence[str]) -> bool:
        return are_equal_by(laws, self.written, self.computed, self.bounds, self.same, _LIMITS)
