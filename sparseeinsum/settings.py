"""Where this user's settings and caches live on this machine."""

import os
from pathlib import Path


def _folder(variable: str, default: str) -> Path:
    base = os.environ.get(variable)
    return (Path(base) if base else _home() / default) / "sparseeinsum"


def _home() -> Path:
    """The user's; where the system knows none, what nothing can be in."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(os.devnull)


def cache_folder() -> Path:
    """Compiled kernels: `$XDG_CACHE_HOME/sparseeinsum`, by default `~/.cache/sparseeinsum`."""
    return _folder("XDG_CACHE_HOME", ".cache")


def state_folder() -> Path:
    """What the shell remembers: `$XDG_STATE_HOME/sparseeinsum`, by default `~/.local/state/sparseeinsum`."""
    return _folder("XDG_STATE_HOME", ".local/state")


def config_folder() -> Path:
    """Calibrated cost constants: `$XDG_CONFIG_HOME/sparseeinsum`, by default `~/.config/sparseeinsum`."""
    return _folder("XDG_CONFIG_HOME", ".config")
