"""Decompose: cost constants: the defaults of stats/<engine>/constants.json, or those measured on this machine."""

import json
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from sparseeinsum import assets
from sparseeinsum.decompose.cost import CostConstants, Work
from sparseeinsum.errors import PlanError
from sparseeinsum.settings import config_folder

# How far a measurement must speak before a constant leaves its default; without it, work that the queries hardly
# contain would get a constant of nearly nothing.
_RIDGE = 0.1
_ROUNDS = 10


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
    """The constants, none negative, with the least squares of relative errors; drawn slightly to the defaults.

    An error is relative to the geometric mean of what was expected and measured, as otherwise too low an expectation
    would count for less than too high a one.
    """
    measured = np.array([each.seconds for each in observations])
    scale = np.array([measured.min(), *_seconds_of_each(Work(1, 1, 1, 1), default)])
    explained = np.array([[scale[0], *_seconds_of_each(each.work, default)] for each in observations])
    drawn = _RIDGE * np.sqrt(len(observations)) * np.eye(len(scale))[1:]
    expected = measured
    for _ in range(_ROUNDS):
        weights = 1 / np.sqrt(measured * expected)
        rows = np.vstack([explained * weights[:, None], drawn])
        factors, _ = nnls(rows, np.concatenate([measured * weights, drawn.sum(axis=1)]))
        expected = explained @ factors
    overhead, tuples, moved, kernel, matrix = (float(value) for value in factors * scale)
    return Fit(CostConstants(moved, kernel, matrix, tuples), overhead, tuple(observations))


def _seconds_of_each(work: Work, constants: CostConstants) -> NDArray[np.float64]:
    """Seconds of every kind of work, in the order of Work's fields."""
    kinds = np.diag(astuple(work))
    return np.array([Work(*kind).seconds(constants) for kind in kinds])


def constants_for(engine: str) -> CostConstants:
    """Constants for an engine: calibrated on this machine where that was done, else the defaults.

    Raises:
        PlanError: The calibration file cannot be read.
    """
    path = calibration_file(engine)
    try:
        text = path.read_text(encoding="utf-8") if path.is_file() else assets.read(f"stats/{engine}/constants.json")
        return CostConstants(**json.loads(text)["constants"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PlanError(
            f"the cost constants in {path} cannot be read ({error}); run `sparseeinsum calibrate`"
        ) from error


def store_constants(engine: str, constants: CostConstants, origin: str) -> Path:
    """Keep calibrated constants for this user; returns the file written."""
    path = calibration_file(engine)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"origin": origin, "constants": asdict(constants)}
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return path


def calibration_file(engine: str) -> Path:
    """Where the constants calibrated on this machine are kept."""
    return config_folder() / f"calibration-{engine}.json"
