"""Imports modules when they are first needed: optional packages, and parts that few programs use."""

import importlib
import importlib.util
import sys
from importlib.machinery import PathFinder
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
        raise _not_installed(str(error.name), extra, purpose) from error


def imported_alone(package: str, module: str, extra: str, purpose: str) -> ModuleType:
    """Import a module of an optional package without what else the package imports; arguments are as for `imported`.

    Args:
        package: The name of the package.
        module: The name of a module in it that imports no other one of it.

    Raises:
        PackageError: The package is not installed.
    """
    name = f"{package}.{module}"
    if name not in sys.modules:
        package_spec = importlib.util.find_spec(package)
        spec = None if package_spec is None else PathFinder.find_spec(name, package_spec.submodule_search_locations)
        if spec is None or spec.loader is None:
            raise _not_installed(package, extra, purpose)
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        sys.modules[name] = loaded  # where the package looks for it, too
    return sys.modules[name]


def _not_installed(package: str, extra: str, purpose: str) -> PackageError:
    return PackageError(
        f"{purpose} needs the package {package}, which is not installed: pip install 'sparseeinsum[{extra}]'"
    )
