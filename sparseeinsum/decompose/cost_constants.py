"""Decompose: cost constants: the defaults in stats/<engine>/constants.json, or those calibrated on this machine."""

import json
from dataclasses import asdict
from functools import lru_cache
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
        return _read(engine, path.read_text(encoding="utf-8") if _exists(path) else None)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PlanError(
            f"the cost constants in {path} cannot be read ({error}); delete it and run `sparseeinsum calibrate` "
            "to measure this machine again (without it, defaults are used)"
        ) from error


@lru_cache(maxsize=16)  # every plan asks for them, several times
def _read(engine: str, calibrated: str | None) -> CostConstants:
    """The cost constants of an engine; `calibrated` is the text of the calibration file, if there is one."""
    defaults = json.loads(assets.read(f"stats/{engine}/constants.json"))["constants"]
    constants = defaults if calibrated is None else json.loads(calibrated)["constants"]
    return CostConstants(**{_RUN: defaults[_RUN], **constants})


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
