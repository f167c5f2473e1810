"""Kernels: libraries compiled now: the one that this process needs, and those that become files for other hosts."""

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

from sparseeinsum.errors import KernelsError
from sparseeinsum.kernels.building.assembling import (
    Pieces,
    library_for_duckdb,
    library_for_postgresql,
    object_for_duckdb,
)
from sparseeinsum.kernels.building.cache import forget_older
from sparseeinsum.kernels.building.compiling import Show, compile_missing, pieces_of
from sparseeinsum.kernels.building.linking import can_link
from sparseeinsum.kernels.building.loading import LoadedObjects
from sparseeinsum.kernels.building.processors import best_level
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.libraries import digest_path, library_path, whole_library
from sparseeinsum.kernels.platforms import this_platform
from sparseeinsum.kernels.whole_files import write_whole
from sparseeinsum.settings import cache_folder
from sparseeinsum.version import __version__

AddressOf = Callable[[str], int]

_ROOM_BYTES = 64 << 20  # that compiling may take in a folder


def compiled_library(processor: str | None) -> AddressOf:
    """Compile the library for DuckDB for a processor of this machine, by default its best level, and open it.

    Without a linker, its object files are loaded by LLVM instead, in each process anew.

    Raises:
        KernelsError: Compiling failed; the message says why.
    """
    target = _target(processor)
    with working_folder() as folder:
        path, pieces = _library_in(folder, target)
        if path is None:
            return LoadedObjects((*pieces.objects, object_for_duckdb(pieces))).address_of
        shared = ctypes.CDLL(str(path))
    return lambda symbol: ctypes.cast(shared[symbol], ctypes.c_void_p).value or 0


def keep_library(processor: str | None) -> Path:
    """Compile the library for DuckDB as `compiled_library` does, unless the cache has it; returns its path.

    Raises:
        KernelsError: Compiling failed, there is no linker, or the cache cannot be written.
    """
    target = _target(processor)
    with working_folder() as folder:
        if folder != cache_folder():
            raise KernelsError(f"{cache_folder()} cannot be written, or is full; name another in XDG_CACHE_HOME")
        path = whole_library(target.platform, str(target.processor)) or _library_in(folder, target)[0]
    if path is None:
        raise KernelsError("there is no linker; pip install ziglang brings one, and on Linux ld is one")
    return path


def duckdb_extension(processors: Sequence[str], version: str) -> bytes:
    """An extension file for some processors of this machine's platform, the least first; by default for its own.

    Raises:
        KernelsError: Compiling failed, or there is no linker.
    """
    return library_for_duckdb(_pieces("duckdb", processors), version)


def postgresql_library(processors: Sequence[str], major: int, version: str) -> bytes:
    """The same for a major version of PostgreSQL.

    Raises:
        KernelsError: Compiling failed, or there is no linker.
    """
    return library_for_postgresql(_pieces("postgresql", processors), major, version)


def _pieces(host: str, processors: Sequence[str]) -> Pieces:
    targets = [_target(processor) for processor in processors or (None,)]
    with working_folder() as folder:
        return _compiled(host, targets, folder)


def _target(processor: str | None) -> Target:
    platform = this_platform()
    return Target(platform, best_level(platform) if processor is None else processor)


def _library_in(folder: Path, target: Target) -> tuple[Path | None, Pieces]:
    """The library in a folder, or none where there is no linker; and what it is made of."""
    pieces = _compiled("duckdb", [target], folder)
    if not can_link(target.platform):
        return None, pieces
    path, content = (
        library_path(folder, target.platform, str(target.processor)),
        library_for_duckdb(pieces, __version__),
    )
    write_whole(path, content, 0o755)
    write_whole(digest_path(path), hashlib.sha256(content).hexdigest().encode())
    forget_older(path)
    forget_older(digest_path(path))
    return path, pieces


def _compiled(host: str, targets: Sequence[Target], folder: Path) -> Pieces:
    processors = ", ".join(str(target.processor) for target in targets)
    try:
        with shown_progress(f"compiling kernels for {processors} (once)") as show:
            compile_missing([host], targets, folder, show)
        return pieces_of(host, targets, folder)
    except OSError as error:
        raise KernelsError(f"compiled kernels cannot be kept in {folder}: {error}") from error


@contextmanager
def working_folder() -> Iterator[Path]:
    """The cache, for this process alone; where it cannot be written or is full, a folder that goes again."""
    folder = cache_folder()
    if _is_of_use(folder):
        with FileLock(folder / "lock"):
            yield folder
    else:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            yield Path(name)


def _is_of_use(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return shutil.disk_usage(folder).free >= _ROOM_BYTES
    except OSError:
        return False


@contextmanager
def shown_progress(message: str) -> Iterator[Show]:
    """A bar on standard error, or a line where that is no terminal; nothing until something is compiled."""
    console = Console(stderr=True)
    columns = (TextColumn("sparseeinsum: {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        tasks: list[TaskID] = []

        def show(finished: int, total: int) -> None:
            if not tasks:
                tasks.append(bar.add_task(message))
                if not console.is_terminal:
                    console.print(f"sparseeinsum: {message}")
            bar.update(tasks[0], completed=finished, total=total)

        yield show
