"""Decompose: cost constants fitted to queries that were timed."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
from scipy.optimize import lsq_linear

from sparseeinsum.decompose.cost import CostConstants, Work

# How far a measurement must speak before a constant leaves its default; without it, work that the queries hardly
# contain would get a constant of nearly nothing.
_RIDGE = 0.085
_ROUNDS = 10
_LEAST = 0.05  # of a default: no work is free, whatever noise says


@dataclass(frozen=True, slots=True)
class Observation:
    """A query that was timed.

    Attributes:
        name: What it was.
        work: What the cost model counts in it.
        seconds: What it took.
    """

    name: str
    work: Work
    seconds: float


@dataclass(frozen=True, slots=True)
class Fit:
    """Constants that explain observations.

    Attributes:
        constants: Of elementary work.
        overhead_seconds: What every query takes besides.
        observations: What they were fitted to.
    """

    constants: CostConstants
    overhead_seconds: float
    observations: tuple[Observation, ...]

    def expected(self, observation: Observation) -> float:
        """Seconds that the fit gives for an observation."""
        return self.overhead_seconds + observation.work.seconds(self.constants)

    @property
    def median_error(self) -> float:
        """Median over the observations of |expected - measured| / measured."""
        errors = [abs(self.expected(each) / each.seconds - 1) for each in self.observations]
        return float(np.median(errors))


def fit_constants(observations: Sequence[Observation], default: CostConstants) -> Fit:
    """The constants, all positive, with the least squares of relative errors; drawn slightly to the defaults.

    An error is relative to the geometric mean of what was expected and measured, as otherwise too low an expectation
    would count for less than too high a one.
    """
    measured = np.array([each.seconds for each in observations])
    scale = np.array([measured.min(), *astuple(default)])
    explained = np.array([[scale[0], *np.multiply(astuple(each.work), astuple(default))] for each in observations])
    expected, factors = measured, np.ones(len(scale))
    least = np.array([0.0, *np.full(len(scale) - 1, _LEAST)])
    for _ in range(_ROUNDS):
        weights = 1 / np.sqrt(measured * expected)
        # In units of what is fitted: on a slow machine the defaults would else weigh more than what was measured.
        drawn = _RIDGE * np.sqrt(len(observations)) * np.diag(1 / np.maximum(factors, 1))[1:]
        rows = np.vstack([explained * weights[:, None], drawn])
        wanted = np.concatenate([measured * weights, drawn.sum(axis=1)])
        factors = lsq_linear(rows, wanted, bounds=(least, np.inf), tol=1e-12).x
        expected = explained @ factors
    overhead, *constants = (float(value) for value in factors * scale)
    return Fit(CostConstants(*constants), overhead, tuple(observations))
