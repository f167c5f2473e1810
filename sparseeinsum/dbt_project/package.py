"""Dbt: the package of macros and tests that models call, written where a project finds it."""

import shutil
from pathlib import Path

import yaml

from sparseeinsum import assets
from sparseeinsum.errors import DbtError

_PACKAGE = "sql/dbt"


def write_package(folder: Path) -> tuple[Path, ...]:
    """Write the package into a folder, in place of what is there of an earlier one.

    Args:
        folder: Which is made if need be.

    Returns:
        The files.

    Raises:
        DbtError: Something else is in the folder.
    """
    if folder.exists() and not _is_ours(folder):
        raise DbtError(f"{folder} holds other files than those of the package sparseeinsum; name a folder of its own")
    source = assets.path(_PACKAGE)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    return tuple(folder / path.relative_to(source) for path in sorted(source.rglob("*")) if path.is_file())


def _is_ours(folder: Path) -> bool:
    """Whether a folder is empty, or holds the package."""
    if folder.is_dir() and not any(folder.iterdir()):
        return True
    try:
        content = yaml.safe_load((folder / "dbt_project.yml").read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return False
    return isinstance(content, dict) and content.get("name") == "sparseeinsum"
