"""Kernels: links the object files of all groups into the library for a host."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sparseeinsum.kernels.building.code_generation import object_of_text
from sparseeinsum.kernels.building.duckdb_code import duckdb_code, footer
from sparseeinsum.kernels.building.linking import link
from sparseeinsum.kernels.building.postgresql_code import exported_to_postgresql, postgresql_code
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.symbols import EXPORTED_TO_DUCKDB


@dataclass(frozen=True, slots=True)
class LibraryParts:
    """The parts that a library is linked from.

    Attributes:
        targets: The processors of one platform that the library has code for, the lowest first.
        objects: The contents of the object files of the groups.
        exported: The names of the functions that the groups export, without the suffixes of processors.
    """

    targets: tuple[Target, ...]
    objects: tuple[bytes, ...]
    exported: frozenset[str]

    @property
    def baseline(self) -> Target:
        """The target of code that runs before a processor is chosen: any processor of the platform."""
        return Target(self.targets[0].platform)


def library_for_duckdb(parts: LibraryParts, version: str) -> bytes:
    """Link the library for DuckDB, which is an extension file; returns its content.

    Args:
        parts: The parts of the library.
        version: The version of the extension.

    Raises:
        KernelsError: There is no linker, or it failed.
    """
    library = _link_parts(parts, object_for_duckdb(parts), EXPORTED_TO_DUCKDB, allow_undefined=False)
    return library + footer(parts.baseline.platform.name, version)


def object_for_duckdb(parts: LibraryParts) -> bytes:
    """Return the object file of the code in the library for DuckDB that belongs to no group."""
    return object_of_text("\n".join(duckdb_code(parts.targets, parts.exported)), parts.baseline)


def library_for_postgresql(parts: LibraryParts, major: int, version: str) -> bytes:
    """Link the library for a major version of PostgreSQL; returns its content.

    Args:
        parts: The parts of the library.
        major: The version of PostgreSQL.
        version: The version of the extension.

    Raises:
        KernelsError: There is no linker, or it failed.
    """
    text = "\n".join(postgresql_code(parts.targets, parts.exported, major, version))
    return _link_parts(
        parts, object_of_text(text, parts.baseline), exported_to_postgresql(version), allow_undefined=True
    )


def _link_parts(parts: LibraryParts, host_object: bytes, exported: Sequence[str], allow_undefined: bool) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        folder, files = Path(name), []
        for index, code in enumerate((*parts.objects, host_object)):
            files.append(folder / f"{index}.o")
            files[-1].write_bytes(code)
        library = folder / "library.so"
        link(files, library, parts.baseline.platform, exported, allow_undefined)
        return library.read_bytes()
