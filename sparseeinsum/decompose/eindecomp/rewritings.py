"""EinDecomp: the ways to rewrite a graph for several workers, among which a search chooses."""

from functools import partial

from sparseeinsum.decompose.cost import CostConstants
from sparseeinsum.decompose.cost_bounds import seconds_predictor
from sparseeinsum.decompose.eindecomp.floats_bound import least_floats
from sparseeinsum.rewrite.predicted_costs import CostPredictor
from sparseeinsum.rewrite.stages import Rewriting


def rewritings_for(workers: int, constants: CostConstants, is_free: bool) -> list[Rewriting]:
    """As it is written, and if it is free, for the fewest seconds on one worker, and for the fewest floats."""
    seconds = seconds_predictor(constants, least=0.0)
    floats = CostPredictor(partial(least_floats, workers=workers), least_seconds=0.0)
    free = [Rewriting(True, seconds), Rewriting(True, floats)] if is_free else []
    return [Rewriting(False, seconds), *free]
