"""Imports modules when they are first needed: optional packages, and parts that few programs use."""

import importlib
from types import ModuleType

from sparseeinsum.errors import PackageError


def late(module: str) -> ModuleType:
    """Import a module of this package or of a required package late, because it is slow and few programs need it."""
    return importlib.import_module(module)


def imported(module: str, extra: str, purpose: str) -> ModuleType:
    """Import a module that needs optional packages.

    Args:
        module: The full name of the module.
        extra: The extra of this package that installs them.
        purpose: What needs the module, as the subject of a sentence.

    Raises:
        PackageError: A package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise PackageError(
            f"{purpose} needs the package {error.name}, which is not installed: pip install 'sparseeinsum[{extra}]'"
        ) from error
