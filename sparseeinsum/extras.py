"""The one door to what is imported where it is first needed: packages of extras, and parts that few programs need."""

import importlib
from types import ModuleType

from sparseeinsum.errors import PackageError


def late(module: str) -> ModuleType:
    """A module of a base dependency or of this package, imported now: it takes a while, and few programs need it."""
    return importlib.import_module(module)


def imported(module: str, extra: str, purpose: str) -> ModuleType:
    """A module, imported now.

    Args:
        module: Its full name.
        extra: Of this package, which brings what the module needs.
        purpose: What needs it, as the subject of a sentence.

    Raises:
        PackageError: A package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise PackageError(
            f"{purpose} needs the package {error.name}, which is not installed: pip install 'sparseeinsum[{extra}]'"
        ) from error
