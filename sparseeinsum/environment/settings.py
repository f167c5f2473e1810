"""Settings: the folders of the user's settings and caches."""

import os
from pathlib import Path


def _folder(variable: str, default: str) -> Path:
    return _base(variable, default) / "sparseeinsum"


def _base(variable: str, default: str) -> Path:
    base = os.environ.get(variable)
    return Path(base) if base else _home() / default


def _home() -> Path:
    """The user's home; if the system knows none, a path in which no file can exist."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(os.devnull)


def cache_folder() -> Path:
    """The folder of kernels and parsers: `$XDG_CACHE_HOME/sparseeinsum`, by default `~/.cache/sparseeinsum`."""
    return _folder("XDG_CACHE_HOME", ".cache")


def state_folder() -> Path:
    """The folder of the shell's history: `$XDG_STATE_HOME/sparseeinsum`, by default `~/.local/state/sparseeinsum`."""
    return _folder("XDG_STATE_HOME", ".local/state")


def config_folder() -> Path:
    """The folder of calibrated cost constants: `$XDG_CONFIG_HOME/sparseeinsum`, by default `~/.config/sparseeinsum`."""
    return _folder("XDG_CONFIG_HOME", ".config")


def completion_file(shell: str) -> Path:
    """The file from which a shell of the user reads completions: of `bash`, `fish` or `zsh`."""
    match shell:
        case "bash":
            return _base("XDG_DATA_HOME", ".local/share") / "bash-completion" / "completions" / "sparseeinsum"
        case "fish":
            return _base("XDG_CONFIG_HOME", ".config") / "fish" / "completions" / "sparseeinsum.fish"
        case _:
            return _base("XDG_DATA_HOME", ".local/share") / "zsh" / "site-functions" / "_sparseeinsum"
