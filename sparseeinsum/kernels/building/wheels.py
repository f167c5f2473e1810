"""Kernels: libraries for every platform, and wheels that bring them: `python -m sparseeinsum.kernels.building.wheels`.

Of the same sources, with the same versions of numba, llvmlite and the linker, the same bytes come out each time.
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

from sparseeinsum.assets import ROOT
from sparseeinsum.kernels.building.assembling import library_for_duckdb, library_for_postgresql
from sparseeinsum.kernels.building.compiling import compile_missing, pieces_of
from sparseeinsum.kernels.building.make import shown_progress, working_folder
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.groups import HOSTS
from sparseeinsum.kernels.libraries import DUCKDB_FILE, postgresql_file
from sparseeinsum.kernels.platforms import PLATFORMS, Platform, this_platform
from sparseeinsum.kernels.postgresql.linking_names import MAJORS
from sparseeinsum.kernels.whole_files import write_whole
from sparseeinsum.version import __version__

_COMPILED, _LIBRARIES = ROOT / "build" / "compiled", ROOT / "build" / "libraries"
_VARIABLE = "SPARSEEINSUM_WHEEL"  # that hatch_build.py reads


def make_libraries(platforms: Sequence[Platform], compiled: Path) -> Iterator[Path]:
    """Link the libraries of some platforms; returns their files.

    Args:
        platforms: What they are for.
        compiled: The folder of compiled code, which gets what it lacks.

    Raises:
        KernelsError: Compiling or linking failed.
    """
    targets = [Target(platform, level) for platform in platforms for level in platform.levels]
    with shown_progress(f"compiling kernels for {', '.join(platform.name for platform in platforms)}") as show:
        compile_missing(HOSTS, targets, compiled, show)
    for platform in track(platforms, "linking", console=Console(stderr=True), transient=True):
        yield from _libraries_of(platform, [target for target in targets if target.platform == platform], compiled)


def _libraries_of(platform: Platform, targets: Sequence[Target], compiled: Path) -> Iterator[Path]:
    folder = _LIBRARIES / platform.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    yield _written(folder / DUCKDB_FILE, library_for_duckdb(pieces_of("duckdb", targets, compiled), __version__))
    for major in MAJORS if platform.has_postgresql else ():
        pieces = pieces_of("postgresql", targets, compiled)
        yield _written(folder / postgresql_file(major), library_for_postgresql(pieces, major, __version__))


def _written(path: Path, content: bytes) -> Path:
    write_whole(path, content, 0o755)
    return path


def make_wheel(platform: Platform, folder: Path) -> None:
    """Build the wheel of a platform, whose libraries are there, into a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, env=os.environ | {_VARIABLE: platform.name}, check=True)


@contextmanager
def _empty_folder() -> Iterator[Path]:
    """Compiling begins anew: what is compiled beside other functions may have other names inside."""
    shutil.rmtree(_COMPILED, ignore_errors=True)
    _COMPILED.mkdir(parents=True)
    yield _COMPILED


def main() -> None:
    """Make wheels as the command line asks."""
    parser = argparse.ArgumentParser(description="Make wheels that bring compiled kernels.")
    parser.add_argument("platforms", nargs="*", help=f"some of {', '.join(PLATFORMS)}; by default all")
    parser.add_argument("--here", action="store_true", help="the platform of this machine alone")
    parser.add_argument("--cached", action="store_true", help="take compiled code from the cache of this user")
    parser.add_argument("--output", default="dist", help="folder for the wheels (default dist)")
    asked = parser.parse_args()
    if unknown := sorted(set(asked.platforms) - set(PLATFORMS)):
        parser.error(f"no platforms: {', '.join(unknown)}")
    platforms = [this_platform()] if asked.here else [PLATFORMS[name] for name in asked.platforms or PLATFORMS]
    with working_folder() if asked.cached else _empty_folder() as compiled:
        for library in make_libraries(platforms, compiled):
            print(f"{library.relative_to(ROOT)}: {library.stat().st_size:,} bytes")  # noqa: T201
    for platform in platforms:
        make_wheel(platform, Path(asked.output).absolute())


if __name__ == "__main__":
    main()
