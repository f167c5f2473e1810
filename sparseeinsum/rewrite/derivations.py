"""Rewriting: shows by which laws a computed formula equals the written one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sparseeinsum.rewrite.saturation.egraph import LAWS, SaturationLimits, can_prove_equal
from sparseeinsum.rewrite.saturation.term_text import write_term
from sparseeinsum.rewrite.saturation.terms import Term

_LIMITS = SaturationLimits(seconds=0.2)


@dataclass(frozen=True)  # no slots, because of the cached property
class Derivation:
    """The formula that computes a result in the place of the written one.

    Attributes:
        written: The formula as it was written.
        computed: The equal formula that is computed.
        bounds: Bounds of all labels.
        equal_pairs: Pairs of terms that differ only in the labels of their sums.
        seconds_written: Predicted seconds of the written formula, without those of EinSums that other results need
            anyway.
        seconds: The same for the computed formula.
    """

    written: Term
    computed: Term
    bounds: Mapping[str, int]
    equal_pairs: Sequence[tuple[Term, Term]]
    seconds_written: float
    seconds: float

    @property
    def share(self) -> float:
        """The seconds of the computed formula divided by those of the written one."""
        return self.seconds / self.seconds_written

    @property
    def formulas(self) -> tuple[str, str]:
        """The written and the computed formula as text."""
        return write_term(self.written), write_term(self.computed)

    @cached_property
    def laws(self) -> Sequence[str]:
        """Laws that prove the formulas equal, none of them superfluous; empty where the proof takes too long."""
        laws = list(LAWS)
        if not self._are_equal_by(laws):
            return []
        for law in LAWS:
            # A law that is not needed for the proof is left out.
            other_laws = [other for other in laws if other != law]
            if self._are_equal_by(other_laws):
                laws = other_laws
        return [LAWS[law] for law in laws]

    def _are_equal_by(self, laws: Sequence[str]) -> bool:
        return can_prove_equal(laws, self.written, self.computed, self.bounds, self.equal_pairs, _LIMITS)
