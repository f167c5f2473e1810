"""Assets: finds the files of sql/, udfs/ and stats/, in a checkout or in the installed package."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

PACKAGE = Path(__file__).resolve().parent.parent
_INSTALLED = PACKAGE / "_assets"
ROOT = _INSTALLED if _INSTALLED.is_dir() else PACKAGE.parent


def path(name: str) -> Path:
    """The path of an asset, such as `stats/entries.sql`."""
    return ROOT / name


def read(name: str) -> str:
    """The text of the asset `name`."""
    return path(name).read_text(encoding="utf-8")


def load_kernels(name: str) -> ModuleType:
    """The module `udfs/<name>.py`, which imports numba; loaded once per process.

    udfs/ is not a package, because the same files also serve hosts without sparseeinsum.
    """
    module_name = f"sparseeinsum_udfs_{name}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, path(f"udfs/{name}.py"))
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"no kernels named {name!r} in {path('udfs')}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    return module
