"""Plans: remarks on how a program was rewritten, one line each."""

from collections.abc import Iterator

from sparseeinsum.plans.units import write_seconds
from sparseeinsum.rewrite.derivations import Derivation
from sparseeinsum.rewrite.rewrite_summary import RewriteSummary
from sparseeinsum.rewrite.saturation.egraph import EXTRA


def rewriting_notes(rewriting: RewriteSummary) -> Iterator[str]:
    """What became of EinSums that are not computed as they were written."""
    for name, parts in rewriting.parts.items():
        if parts:
            yield f"{name}: taken apart into {', '.join(parts)}: fewer, sparser or smaller operands each are cheaper"
    for name, same in rewriting.merged.items():
        yield f"{name}: the same as {same}, which is computed once for both"
    for name in rewriting.unsearched:
        yield f"{name}: no equal formulas were looked for, which needs egglog: pip install 'sparseeinsum[{EXTRA}]'"
    for name, derivation in rewriting.derivations.items():
        yield from _derivation_notes(name, derivation)
    for product in dict.fromkeys(rewriting.inlined.values()):
        if product not in rewriting.derivations:
            absorbed = ", ".join(name for name, absorbing in rewriting.inlined.items() if absorbing == product)
            yield (
                f"{product}: its product is computed in another order than written, without {absorbed} "
                "(rewrite=False keeps to what is written)"
            )


def _derivation_notes(name: str, derivation: Derivation) -> Iterator[str]:
    """The formula that computes a result, and the laws that make it equal to the written one."""
    seconds = f"{write_seconds(derivation.seconds)} instead of {write_seconds(derivation.seconds_written)}"
    yield (
        f"{name}: computed by an equal formula, expected to take {seconds} ({derivation.share:.2g} times as long), and "
        "rounded otherwise (rewrite=False keeps to what is written)"
    )
    written, computed = derivation.formulas
    yield f"{name}: written as {written}"
    yield f"{name}: computed as {computed}"
    if derivation.laws:
        yield f"{name}: which is equal by {', '.join(derivation.laws)}"
