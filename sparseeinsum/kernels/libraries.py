"""Kernels: finds libraries of compiled code in the installed package and in the cache of this machine."""

import hashlib
import importlib.util
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from sparseeinsum.environment import assets
from sparseeinsum.environment.settings import cache_folder
from sparseeinsum.kernels.index_checks import are_checked
from sparseeinsum.kernels.platforms import NATIVE, Platform, processor_asked_for, this_platform
from sparseeinsum.version import __version__

DUCKDB_FILE = "sparseeinsum.duckdb_extension"  # DuckDB derives the name of the entry point from it
_FOLDER = "libraries"  # below the assets of a wheel
_SOURCES = ("*.py", "*.toml")


def postgresql_file(major: int) -> str:
    """Return the file name, in a wheel, of the library for a major version of PostgreSQL."""
    return f"postgresql-{major}.so"


def prebuilt(name: str) -> Path | None:
    """Return the path of a library that the wheel ships, for all processors of the platform; None if it ships none.

    It is None, too, where kernels with checked indices are asked for: wheels ship none of those.
    """
    path = assets.path(f"{_FOLDER}/{name}")
    return path if path.is_file() and not are_checked() else None


def libraries_for_duckdb() -> Iterator[Path]:
    """Yield the libraries that this process may open, the best first; some may not run on this processor.

    First comes a library that was compiled for exactly this processor, then the one of the wheel, then those that were
    compiled on this machine for a processor level.

    Raises:
        KernelsError: There are no kernels for this platform, or the environment asks for a processor that it lacks.
    """
    asked_for, platform = processor_asked_for(), this_platform()
    processors = (NATIVE, *reversed(platform.levels)) if asked_for is None else (asked_for,)
    compiled = {processor: path for processor in processors if (path := whole_library(platform, processor))}
    shipped = prebuilt(DUCKDB_FILE) if asked_for != NATIVE else None
    if NATIVE in compiled:
        yield compiled.pop(NATIVE)
    if shipped is not None:
        yield shipped
    yield from compiled.values()


def whole_library(platform: Platform, processor: str) -> Path | None:
    """Return the cached library for DuckDB and a processor; None if there is none or it is damaged."""
    if not any(cache_folder().glob(f"{_library_name(platform, processor)}-*")):
        return None
    path = library_path(cache_folder(), platform, processor)
    with suppress(OSError):
        if digest_path(path).read_text() == hashlib.sha256(path.read_bytes()).hexdigest():
            return path
    return None


def library_path(folder: Path, platform: Platform, processor: str) -> Path:
    """Return the path, below `folder`, of the library for DuckDB that is compiled for a processor."""
    return folder / f"{_library_name(platform, processor)}-{digest_of_sources()}.duckdb_extension"


def digest_path(library: Path) -> Path:
    """Return the path of the file that holds the checksum of a library."""
    return library.with_suffix(".sha256")


def _library_name(platform: Platform, processor: str) -> str:
    return f"duckdb-{platform.name}-{processor}"


@cache
def digest_of_sources() -> str:
    """Return a digest of everything that libraries are compiled from: sources, versions and settings."""
    made_with = (__version__, *map(_version, ("numba", "llvmlite")), str(are_checked()))
    digest = hashlib.sha256("\n".join(made_with).encode())
    for folder in (assets.PACKAGE / "kernels", assets.PACKAGE / "operators", assets.path("udfs")):
        for file in sorted(path for pattern in _SOURCES for path in folder.rglob(pattern)):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:24]


def _version(package: str) -> str:
    """Return the version of an installed package, from the folder name of its metadata, without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return ""
    return ",".join(sorted(folder.name for folder in Path(spec.origin).parent.parent.glob(f"{package}-*.dist-info")))
