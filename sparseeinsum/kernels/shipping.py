"""Kernels: returns libraries as files for databases elsewhere: from the wheel, or compiled now."""

from sparseeinsum.environment.extras import imported
from sparseeinsum.errors import ExtensionError, KernelsError, PackageError
from sparseeinsum.kernels.libraries import DUCKDB_FILE, postgresql_file, prebuilt
from sparseeinsum.kernels.platforms import this_platform
from sparseeinsum.kernels.postgresql.linking_names import MAJORS
from sparseeinsum.version import __version__

_BUILDER = "sparseeinsum.kernels.building.make"


def duckdb_extension(processor: str | None, version: str) -> bytes:
    """Return the content of the extension file for DuckDB on machines of this platform.

    Args:
        processor: A processor of the platform; None for all of its levels.
        version: The version of the extension.

    Raises:
        ExtensionError: The platform has no such processor, or the library cannot be compiled on this machine.
    """
    processors = _processors(processor)
    return _prebuilt_content(DUCKDB_FILE, processors, version) or _compile("duckdb_extension", processors, version)


def postgresql_library(processor: str | None, major: int, version: str, is_for_here: bool = False) -> bytes:
    """Return the content of the library for a major version of PostgreSQL on machines of this platform.

    Args:
        processor: A processor of the platform; None for all of its levels.
        major: The version of PostgreSQL, one of MAJORS.
        version: The version of the extension.
        is_for_here: Whether the library needs to run on this machine only, which takes less time to compile.

    Raises:
        ExtensionError: The version is not supported, the platform has no such processor, or the library cannot be
            compiled on this machine.
    """
    if major not in MAJORS:
        raise ExtensionError(f"PostgreSQL {major} is not supported; versions are {', '.join(map(str, MAJORS))}")
    processors = _processors(processor)
    prebuilt_library_content = _prebuilt_content(postgresql_file(major), processors, version)
    return prebuilt_library_content or _compile("postgresql_library", () if is_for_here else processors, major, version)


def _processors(processor: str | None) -> tuple[str, ...]:
    platform = this_platform()
    if processor is None:
        return platform.levels
    if processor not in platform.processors:
        raise ExtensionError(f"the processor {processor} is none of {', '.join(platform.processors)}")
    return (processor,)


def _prebuilt_content(name: str, processors: tuple[str, ...], version: str) -> bytes | None:
    path = prebuilt(name) if processors == this_platform().levels and version == __version__ else None
    return None if path is None else path.read_bytes()


def _compile(library: str, processors: tuple[str, ...], *arguments: object) -> bytes:
    try:
        builder = imported(_BUILDER, "compile", "compiling a library")
        content: bytes = getattr(builder, library)(processors, *arguments)
    except (KernelsError, PackageError) as error:
        raise ExtensionError(str(error)) from error
    return content
