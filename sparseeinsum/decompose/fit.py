"""Decompose: fits cost constants to timed queries, and measures how well they predict other queries."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np

from sparseeinsum.decompose.cost import CostConstants, Work
from sparseeinsum.environment.extras import imported

# The weight of the defaults (ridge regression). Without it, work that the queries hardly contain would get a constant
# close to 0.
_RIDGE = 0.07
_ROUNDS = 20
_LEAST = 0.2  # lower bound of a constant, relative to its default: no work is free, whatever noise suggests
_USUAL = 0.4  # larger errors, as logarithms of a factor, indicate a disturbed query, which gets less weight


@dataclass(frozen=True, slots=True)
class Observation:
    """A query that was timed.

    Attributes:
        program: The program whose plan the query belongs to.
        name: Name of the query.
        work: The work that the cost model counts in it.
        seconds: The measured seconds.
    """

    program: str
    name: str
    work: Work
    seconds: float


@dataclass(frozen=True, slots=True)
class Residual:
    """The errors of one query, as factors of at least 1.

    Attributes:
        observation: The query.
        expected: Seconds by constants that were fitted to all queries, including this one.
        predicted: Seconds by constants that were fitted only to the queries of other programs.
    """

    observation: Observation
    expected: float
    predicted: float

    @property
    def fit_error(self) -> float:
        """The larger of expected and measured seconds, divided by the smaller."""
        return _factor(self.expected, self.observation.seconds)

    @property
    def prediction_error(self) -> float:
        """The larger of predicted and measured seconds, divided by the smaller."""
        return _factor(self.predicted, self.observation.seconds)


@dataclass(frozen=True, slots=True)
class Fit:
    """Constants that were fitted to observations.

    Attributes:
        constants: Seconds of elementary work, and of a whole query.
        observations: The observations.
    """

    constants: CostConstants
    observations: tuple[Observation, ...]

    def expected(self, observation: Observation) -> float:
        """The seconds that the fit predicts for an observation."""
        return self.constants.fixed_seconds_per_run + observation.work.seconds(self.constants)


def fit_constants(observations: Sequence[Observation], default: CostConstants) -> Fit:
    """Fit positive constants by least squares of relative errors, with a slight pull to the defaults.

    An error is relative to the geometric mean of expected and measured seconds, because otherwise too low a prediction
    would count for less than too high a one. Large errors get less weight than their squares.

    Args:
        observations: The timed queries.
        default: The default constants.

    Raises:
        PackageError: The package scipy is not installed.
    """
    optimize = imported("scipy.optimize", "scipy", "calibrating")
    measured = np.array([observation.seconds for observation in observations])
    scale = np.array([measured.min(), *default.of_work])
    # Unknowns are factors of the default constants, and of the shortest measurement for a run of no work.
    explained = np.array(
        [[scale[0], *np.multiply(astuple(observation.work), default.of_work)] for observation in observations]
    )
    expected, factors = measured, np.ones(len(scale))
    least = np.array([0.0, *np.full(len(scale) - 1, _LEAST)])
    for _ in range(_ROUNDS):
        errors = np.abs(np.log(expected / measured))
        weights = np.sqrt(np.minimum(1, _USUAL / np.maximum(errors, _USUAL)) / (measured * expected))
        # In units of the fitted factors: otherwise, on a slow machine, the defaults would outweigh the measurements.
        ridge = _RIDGE * np.sqrt(len(observations)) * np.diag(1 / np.maximum(factors, 1))[1:]
        rows = np.vstack([explained * weights[:, None], ridge])
        targets = np.concatenate([measured * weights, ridge.sum(axis=1)])
        factors = optimize.lsq_linear(rows, targets, bounds=(least, np.inf), tol=1e-12).x
        expected = explained @ factors
    run, *constants = (float(value) for value in factors * scale)
    return Fit(replace(CostConstants(*constants), fixed_seconds_per_run=run), tuple(observations))


def residuals(fit: Fit, default: CostConstants) -> tuple[Residual, ...]:
    """The errors of every observation: of the fit, and in a cross-validation that leaves out one program at a time.

    Args:
        fit: A fit to observations of at least two programs.
        default: The default constants, for the fits of the cross-validation.
    """
    errors = []
    for program in dict.fromkeys(observation.program for observation in fit.observations):
        others = fit_constants(
            [observation for observation in fit.observations if observation.program != program], default
        )
        errors += [
            Residual(observation, fit.expected(observation), others.expected(observation))
            for observation in fit.observations
            if observation.program == program
        ]
    return tuple(errors)


def _factor(first: float, second: float) -> float:
    return max(first / second, second / first)
