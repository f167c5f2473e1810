"""Decompose: cost constants fitted to queries that were timed, and how well they foretell others."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from sparseeinsum.decompose.cost import CostConstants, Work
from sparseeinsum.extras import imported

# How far a measurement must speak before a constant leaves its default; without it, work that the queries hardly
# contain would get a constant of nearly nothing.
_RIDGE = 0.07
_ROUNDS = 20
_LEAST = 0.2  # of a default: no work is free, whatever noise says
_USUAL = 0.4  # error, as the logarithm of a factor, beyond which a query was disturbed, and counts for less


@dataclass(frozen=True, slots=True)
class Observation:
    """A query that was timed.

    Attributes:
        program: Whose plan it was.
        name: What it was.
        work: What the cost model counts in it.
        seconds: What it took.
    """

    program: str
    name: str
    work: Work
    seconds: float


@dataclass(frozen=True, slots=True)
class Residual:
    """How far expectations of one query are off, as factors of at least 1.

    Attributes:
        observation: The query.
        expected: Seconds that constants give that were fitted to it, too.
        predicted: Seconds that constants give that were fitted to the queries of all other programs.
    """

    observation: Observation
    expected: float
    predicted: float

    @property
    def fit_error(self) -> float:
        """Of what is expected and measured, the larger by the smaller."""
        return _factor(self.expected, self.observation.seconds)

    @property
    def prediction_error(self) -> float:
        """Of what is predicted and measured, the larger by the smaller."""
        return _factor(self.predicted, self.observation.seconds)


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


def fit_constants(observations: Sequence[Observation], default: CostConstants) -> Fit:
    """The constants, all positive, with the least squares of relative errors; drawn slightly to the defaults.

    An error is relative to the geometric mean of what was expected and measured, as otherwise too low an expectation
    would count for less than too high a one. Large errors count for less than by their squares.

    Raises:
        PackageError: The package scipy is not installed.
    """
    optimize = imported("scipy.optimize", "scipy", "calibrating")
    measured = np.array([each.seconds for each in observations])
    scale = np.array([measured.min(), *astuple(default)])
    explained = np.array([[scale[0], *np.multiply(astuple(each.work), astuple(default))] for each in observations])
    expected, factors = measured, np.ones(len(scale))
    least = np.array([0.0, *np.full(len(scale) - 1, _LEAST)])
    for _ in range(_ROUNDS):
        errors = np.abs(np.log(expected / measured))
        weights = np.sqrt(np.minimum(1, _USUAL / np.maximum(errors, _USUAL)) / (measured * expected))
        # In units of what is fitted: on a slow machine the defaults would else weigh more than what was measured.
        drawn = _RIDGE * np.sqrt(len(observations)) * np.diag(1 / np.maximum(factors, 1))[1:]
        rows = np.vstack([explained * weights[:, None], drawn])
        wanted = np.concatenate([measured * weights, drawn.sum(axis=1)])
        factors = optimize.lsq_linear(rows, wanted, bounds=(least, np.inf), tol=1e-12).x
        expected = explained @ factors
    overhead, *constants = (float(value) for value in factors * scale)
    return Fit(CostConstants(*constants), overhead, tuple(observations))


def residuals(fit: Fit, default: CostConstants) -> tuple[Residual, ...]:
    """How far every observation is off: as fitted, and as constants foretell it that know no plan of its program.

    Args:
        fit: To observations of two programs at least.
        default: What constants are drawn to.
    """
    found = []
    for program in dict.fromkeys(each.program for each in fit.observations):
        others = fit_constants([each for each in fit.observations if each.program != program], default)
        found += [
            Residual(each, fit.expected(each), others.expected(each))
            for each in fit.observations
            if each.program == program
        ]
    return tuple(found)


def _factor(one: float, other: float) -> float:
    return max(one / other, other / one)
