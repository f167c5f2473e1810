"""Decompose: cost constants: the defaults in stats/<engine>/constants.json, or those calibrated on this machine."""

import json
from dataclasses import asdict
from pathlib import Path

from sparseeinsum.decompose.cost import CostConstants
from sparseeinsum.environment import assets
from sparseeinsum.environment.settings import config_folder
from sparseeinsum.errors import PlanError

_RUN = "fixed_seconds_per_run"  # which earlier calibrations lack


def constants_for(engine: str) -> CostConstants:
    """The cost constants of an engine: those calibrated on this machine if there are any, else the defaults.

    Raises:
        PlanError: The calibration file cannot be read.
    """
    path = calibration_file(engine)
    try:
        defaults = json.loads(assets.read(f"stats/{engine}/constants.json"))["constants"]
        calibrated = json.loads(path.read_text(encoding="utf-8"))["constants"] if _exists(path) else defaults
        return CostConstants(**{_RUN: defaults[_RUN], **calibrated})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PlanError(
            f"the cost constants in {path} cannot be read ({error}); delete it and run `sparseeinsum calibrate` "
            "to measure this machine again (without it, defaults are used)"
        ) from error


def store_constants(engine: str, constants: CostConstants, origin: str) -> Path:
    """Write calibrated constants to this user's calibration file, and return its path.

    Args:
        engine: Name of the engine.
        constants: The constants.
        origin: What they were measured with.
    """
    path = calibration_file(engine)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"origin": origin, "constants": asdict(constants)}
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return path


def _exists(path: Path) -> bool:
    """Whether a file exists; False if this user may not look, such as in a server that another user started."""
    try:
        return path.is_file()
    except PermissionError:
        return False


def calibration_file(engine: str) -> Path:
    """The file for the constants that were calibrated on this machine."""
    return config_folder() / f"calibration-{engine}.json"
