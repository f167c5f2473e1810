"""Kernels: object files of all groups in, the library for a host out."""

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
class Pieces:
    """What a library is linked from.

    Attributes:
        targets: Processors of one platform, the least first.
        objects: Object files of groups.
        exported: Names of functions that the groups export, without those of processors.
    """

    targets: tuple[Target, ...]
    objects: tuple[bytes, ...]
    exported: frozenset[str]

    @property
    def least(self) -> Target:
        """What code is for that runs before a processor is chosen."""
        return Target(self.targets[0].platform)


def library_for_duckdb(pieces: Pieces, version: str) -> bytes:
    """The library for DuckDB, an extension file of a version.

    Raises:
        KernelsError: There is no linker, or it failed.
    """
    linked = _linked(pieces, object_for_duckdb(pieces), EXPORTED_TO_DUCKDB, open_ends=False)
    return linked + footer(pieces.least.platform.name, version)


def object_for_duckdb(pieces: Pieces) -> bytes:
    """The object file of what the library for DuckDB has beside groups."""
    return object_of_text("\n".join(duckdb_code(pieces.targets, pieces.exported)), pieces.least)


def library_for_postgresql(pieces: Pieces, major: int, version: str) -> bytes:
    """The library for a major version of PostgreSQL, of a version of the extension.

    Raises:
        KernelsError: There is no linker, or it failed.
    """
    text = "\n".join(postgresql_code(pieces.targets, pieces.exported, major, version))
    return _linked(pieces, object_of_text(text, pieces.least), exported_to_postgresql(version), open_ends=True)


def _linked(pieces: Pieces, host: bytes, exported: Sequence[str], open_ends: bool) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        folder, files = Path(name), []
        for index, code in enumerate((*pieces.objects, host)):
            files.append(folder / f"{index}.o")
            files[-1].write_bytes(code)
        library = folder / "library.so"
        link(files, library, pieces.least.platform, exported, open_ends)
        return library.read_bytes()
