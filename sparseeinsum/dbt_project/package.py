"""Dbt: writes the package of macros and tests that generated models call."""

import shutil
from pathlib import Path

import yaml

from sparseeinsum.environment import assets
from sparseeinsum.errors import DbtError

_PACKAGE = "sql/dbt"


def write_package(folder: Path) -> tuple[Path, ...]:
    """Write the package into a folder; it replaces an earlier version of the package.

    Args:
        folder: The folder, which is created if missing.

    Returns:
        The files that were written.

    Raises:
        DbtError: The folder has other files.
    """
    if folder.exists() and not _may_replace(folder):
        raise DbtError(f"{folder} has other files than those of the package sparseeinsum; name an empty folder")
    source = assets.path(_PACKAGE)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    return tuple(folder / path.relative_to(source) for path in sorted(source.rglob("*")) if path.is_file())


def _may_replace(folder: Path) -> bool:
    """Whether a folder is empty, or has a version of the package."""
    if folder.is_dir() and not any(folder.iterdir()):
        return True
    try:
        content = yaml.safe_load((folder / "dbt_project.yml").read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return False
    return isinstance(content, dict) and content.get("name") == "sparseeinsum"
