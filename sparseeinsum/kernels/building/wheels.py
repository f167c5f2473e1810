"""Kernels: builds libraries and wheels for every platform: `python -m sparseeinsum.kernels.building.wheels`.

The build is reproducible: the same sources and versions of numba, llvmlite and the linker give the same bytes.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import track

from sparseeinsum.environment.assets import ROOT
from sparseeinsum.kernels.building.assembling import library_for_duckdb, library_for_postgresql
from sparseeinsum.kernels.building.compiling import compile_missing, library_parts
from sparseeinsum.kernels.building.make import progress_bar, working_folder
from sparseeinsum.kernels.building.processors import best_level
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.groups import HOSTS
from sparseeinsum.kernels.libraries import DUCKDB_FILE, postgresql_file
from sparseeinsum.kernels.platforms import PLATFORMS, Platform, this_platform
from sparseeinsum.kernels.postgresql.linking_names import MAJORS
from sparseeinsum.kernels.whole_files import write_whole
from sparseeinsum.version import __version__

_COMPILED, _LIBRARIES = ROOT / "build" / "compiled", ROOT / "build" / "libraries"
_VARIABLE = "SPARSEEINSUM_WHEEL"  # hatch_build.py reads it


def make_libraries(targets: Sequence[Target], compiled: Path) -> Iterator[Path]:
    """Compile and link the libraries of some platforms; yields the paths of their files.

    Args:
        targets: The processors that they have code for, the lowest of a platform first.
        compiled: The folder of compiled code; missing files are added to it.

    Raises:
        KernelsError: Compiling or linking failed.
    """
    platforms = list(dict.fromkeys(target.platform for target in targets))
    with progress_bar(f"compiling kernels for {', '.join(platform.name for platform in platforms)}") as show:
        compile_missing(HOSTS, targets, compiled, show)
    for platform in track(platforms, "linking", console=Console(stderr=True), transient=True):
        yield from _libraries_of(platform, [target for target in targets if target.platform == platform], compiled)


def _libraries_of(platform: Platform, targets: Sequence[Target], compiled: Path) -> Iterator[Path]:
    folder = _LIBRARIES / platform.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    yield _write_library(
        folder / DUCKDB_FILE, library_for_duckdb(library_parts("duckdb", targets, compiled), __version__)
    )
    for major in MAJORS if platform.has_postgresql else ():
        parts = library_parts("postgresql", targets, compiled)
        yield _write_library(folder / postgresql_file(major), library_for_postgresql(parts, major, __version__))


def _write_library(path: Path, content: bytes) -> Path:
    write_whole(path, content, 0o755)
    return path


def make_wheel(platform: Platform, folder: Path) -> None:
    """Build the wheel of a platform into a folder; the libraries of the platform must exist."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, env=os.environ | {_VARIABLE: platform.name}, check=True)


@contextmanager
def _empty_folder() -> Iterator[Path]:
    """Yield an empty folder for compiled code, because cached code may differ in the names of internal symbols."""
    shutil.rmtree(_COMPILED, ignore_errors=True)
    _COMPILED.mkdir(parents=True)
    yield _COMPILED


def main() -> None:
    """Build libraries and wheels according to the arguments of the command line."""
    parser = argparse.ArgumentParser(description="Build wheels that contain compiled kernels.")
    parser.add_argument("platforms", nargs="*", help=f"some of {', '.join(PLATFORMS)}; by default all")
    parser.add_argument(
        "--here", action="store_true", help="only for this machine, with compiled code from this user's cache"
    )
    parser.add_argument("--output", default="dist", help="folder for the wheels (default dist)")
    options = parser.parse_args()
    if unknown := sorted(set(options.platforms) - set(PLATFORMS)):
        parser.error(f"unknown platforms: {', '.join(unknown)}")
    if options.here:
        platforms = [this_platform()]
        targets = [Target(this_platform(), best_level(this_platform()))]
    else:
        platforms = [PLATFORMS[name] for name in options.platforms or PLATFORMS]
        targets = [Target(platform, level) for platform in platforms for level in platform.levels]
    with working_folder() if options.here else _empty_folder() as compiled:
        for library in make_libraries(targets, compiled):
            print(f"{library.relative_to(ROOT)}: {library.stat().st_size:,} bytes")  # noqa: T201
    for platform in platforms:
        make_wheel(platform, Path(options.output).absolute())


if __name__ == "__main__":
    main()
