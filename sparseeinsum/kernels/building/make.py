"""Kernels: compiles libraries: the one that this process needs, and files for databases elsewhere."""

import ctypes
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from sparseeinsum.environment.settings import cache_folder
from sparseeinsum.errors import KernelsError
from sparseeinsum.kernels.building.assembling import (
    LibraryParts,
    library_for_duckdb,
    library_for_postgresql,
    object_for_duckdb,
)
from sparseeinsum.kernels.building.cache import remove_older
from sparseeinsum.kernels.building.compiling import ShowProgress, compile_missing, library_parts
from sparseeinsum.kernels.building.linking import can_link, require_linker
from sparseeinsum.kernels.building.loading import LoadedObjects
from sparseeinsum.kernels.building.processors import best_level
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.libraries import digest_path, library_path, whole_library
from sparseeinsum.kernels.platforms import this_platform
from sparseeinsum.kernels.whole_files import write_whole
from sparseeinsum.version import __version__

AddressOf = Callable[[str], int]

_ROOM_BYTES = 64 << 20  # free disk space that compiling may need


def compile_library(processor: str | None) -> AddressOf:
    """Compile the library for DuckDB and open it; returns a function that finds the addresses of its symbols.

    Without a linker, LLVM loads the object files instead, again in every process.

    Args:
        processor: A processor of this machine's platform; None for the best level that this machine has.

    Raises:
        KernelsError: Compiling failed; the message says why.
    """
    target = _target(processor)
    with working_folder() as folder:
        path, parts = _link_library(folder, target)
        if path is None:
            return LoadedObjects((*parts.objects, object_for_duckdb(parts))).address_of
        library = ctypes.CDLL(str(path))
    return lambda symbol: ctypes.cast(library[symbol], ctypes.c_void_p).value or 0


def cache_library(processor: str | None) -> Path:
    """Compile the library for DuckDB into the cache, unless it is there; returns its path.

    Args:
        processor: As for `compile_library`.

    Raises:
        KernelsError: Compiling failed, there is no linker, or the cache cannot be written.
    """
    target = _target(processor)
    with working_folder() as folder:
        if folder != cache_folder():
            raise KernelsError(f"{cache_folder()} cannot be written, or is full; set XDG_CACHE_HOME to another folder")
        path = whole_library(target.platform, str(target.processor))
        if path is None:
            require_linker(target.platform)
            path, _ = _link_library(folder, target)
    assert path is not None  # as there is a linker
    return path


def duckdb_extension(processors: Sequence[str], version: str) -> bytes:
    """Compile and link an extension file for DuckDB; returns its content.

    Args:
        processors: Processors of this machine's platform, the lowest first; none for the best level of this machine.
        version: The version of the extension.

    Raises:
        KernelsError: Compiling failed, or there is no linker.
    """
    return library_for_duckdb(_parts("duckdb", processors), version)


def postgresql_library(processors: Sequence[str], major: int, version: str) -> bytes:
    """Compile and link the library for a major version of PostgreSQL; returns its content.

    Args:
        processors: As for `duckdb_extension`.
        major: The version of PostgreSQL.
        version: The version of the extension.

    Raises:
        KernelsError: Compiling failed, or there is no linker.
    """
    return library_for_postgresql(_parts("postgresql", processors), major, version)


def _parts(host: str, processors: Sequence[str]) -> LibraryParts:
    targets = [_target(processor) for processor in processors or (None,)]
    require_linker(this_platform())  # before minutes of compiling
    with working_folder() as folder:
        return _compile_parts(host, targets, folder)


def _target(processor: str | None) -> Target:
    platform = this_platform()
    return Target(platform, best_level(platform) if processor is None else processor)


def _link_library(folder: Path, target: Target) -> tuple[Path | None, LibraryParts]:
    """Link the library for DuckDB in a folder; returns its path, None without a linker, and its parts."""
    parts = _compile_parts("duckdb", [target], folder)
    if not can_link(target.platform):
        return None, parts
    path = library_path(folder, target.platform, str(target.processor))
    content = library_for_duckdb(parts, __version__)
    write_whole(path, content, 0o755)
    write_whole(digest_path(path), hashlib.sha256(content).hexdigest().encode())
    remove_older(path)
    remove_older(digest_path(path))
    return path, parts


def _compile_parts(host: str, targets: Sequence[Target], folder: Path) -> LibraryParts:
    processors = ", ".join(str(target.processor) for target in targets)
    try:
        with progress_bar(f"compiling kernels for {processors} (once)") as show:
            compile_missing([host], targets, folder, show)
        return library_parts(host, targets, folder)
    except OSError as error:
        raise KernelsError(f"compiled kernels cannot be written to {folder}: {error}") from error


@contextmanager
def working_folder() -> Iterator[Path]:
    """Lock the cache for this process; yields a temporary folder instead if it is full or cannot be written."""
    folder = cache_folder()
    if _is_usable(folder):
        with FileLock(folder / "lock"):
            yield folder
    else:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            yield Path(name)


def _is_usable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return shutil.disk_usage(folder).free >= _ROOM_BYTES
    except OSError:
        return False


@contextmanager
def progress_bar(message: str) -> Iterator[ShowProgress]:
    """Show progress on standard error, as a bar or, without a terminal, as one line; nothing before the first call."""
    console = Console(stderr=True)
    columns = (TextColumn("sparseeinsum: {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        tasks: list[TaskID] = []

        def show(finished: int, total: int) -> None:
            if not tasks:
                tasks.append(progress.add_task(message))
                if not console.is_terminal:
                    console.print(f"sparseeinsum: {message}")
            progress.update(tasks[0], completed=finished, total=total)

        yield show
