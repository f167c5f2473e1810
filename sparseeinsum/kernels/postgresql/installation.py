"""Kernels: writes the files of PostgreSQL's extension: for the server of a `pg_config`, or into a folder."""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from sparseeinsum.errors import ExtensionError
from sparseeinsum.kernels.postgresql.extension_script import (
    EXTENSION,
    PYTHON_EXTENSION,
    control_file,
    install_script,
    update_script,
)
from sparseeinsum.kernels.postgresql.texts import ExtensionTexts, extension_files, reporting_with
from sparseeinsum.kernels.shipping import postgresql_library
from sparseeinsum.kernels.whole_files import write_whole

_DEBIAN = Path("/usr/lib/postgresql")  # has a folder for every major version on Debian
_DYLIBS_SINCE = 16  # the first major version whose servers on macOS load .dylib files


@dataclass(frozen=True, slots=True)
class InstalledServer:
    """A PostgreSQL server that is installed on this machine, as its `pg_config` describes it."""

    major: int
    library_folder: Path
    extension_folder: Path


def find_server(pg_config: str | None = None) -> InstalledServer:
    """Find the server of a `pg_config`, by default of the only one that Debian installed, or of that on the path.

    Raises:
        ExtensionError: There is no `pg_config`, there are several, or it fails.
    """
    program = _find_pg_config() if pg_config is None else pg_config
    match = _VERSION.match(_run_pg_config(program, "--version"))
    if match is None:
        raise ExtensionError(f"{program} --version does not return a version of PostgreSQL")
    share = Path(_run_pg_config(program, "--sharedir"))
    return InstalledServer(int(match[1]), Path(_run_pg_config(program, "--pkglibdir")), share / "extension")


_VERSION = re.compile(r"PostgreSQL (\d+)")


def _find_pg_config() -> str:
    on_path = shutil.which("pg_config")
    of_debian = sorted(map(str, _DEBIAN.glob("*/bin/pg_config")))
    if len(of_debian) > 1:
        raise ExtensionError(
            f"there are several PostgreSQL servers; choose one with --pg-config: {', '.join(of_debian)}"
        )
    if not (of_debian or on_path):
        raise ExtensionError("no pg_config found; install PostgreSQL, or name its pg_config with --pg-config")
    return of_debian[0] if of_debian else str(on_path)


def _run_pg_config(program: str, option: str) -> str:
    try:
        finished = subprocess.run([program, option], capture_output=True, text=True, check=False)
    except OSError as error:
        raise ExtensionError(f"{program} cannot be run: {error}") from error
    if finished.returncode != 0:
        raise ExtensionError(f"{program} {option} failed: {finished.stderr.strip()}")
    return finished.stdout.strip()


def install_extension(server: InstalledServer, version: str) -> tuple[Path, ...]:
    """Write library, control file and scripts to the folders of a server; returns their paths.

    In databases that have an earlier version, functions fail until `ALTER EXTENSION sparseeinsum UPDATE`: the new
    library lacks the symbols of the old version.

    Raises:
        ExtensionError: The version is not supported, a folder cannot be written, or linking failed.
    """
    content = postgresql_library(None, server.major, version, is_for_here=True)
    library = server.library_folder / f"{EXTENSION}{_suffix(server.major)}"
    return _write(content, library, server.extension_folder, version)


def remove_extension(server: InstalledServer) -> tuple[Path, ...]:
    """Remove all files that `install_extension` and `install_python` wrote for a server; returns their paths.

    Raises:
        ExtensionError: There are no such files, or one cannot be removed.
    """
    folder = server.extension_folder
    texts = (path for name in (EXTENSION, PYTHON_EXTENSION) for path in extension_files(folder, name))
    library = server.library_folder / f"{EXTENSION}{_suffix(server.major)}"
    files = tuple(path for path in (*texts, library) if path.is_file())
    if not files:
        raise ExtensionError(f"there are no files of sparseeinsum in {folder} and {server.library_folder}")
    with reporting_with("run as a user who may write there"):
        for path in files:
            path.unlink()
    return files


def write_extension(folder: Path, major: int, version: str, processor: str | None = None) -> tuple[Path, ...]:
    """Write all files for a major version of PostgreSQL into a folder; returns their paths.

    Raises:
        ExtensionError: The version is not supported, the folder cannot be written, or linking failed.
    """
    library = folder / f"{EXTENSION}{_suffix(major)}"
    return _write(postgresql_library(processor, major, version), library, folder, version)


def _suffix(major: int) -> str:
    """Return the file name extension of the libraries that a server of this machine loads."""
    return ".dylib" if sys.platform == "darwin" and major >= _DYLIBS_SINCE else ".so"


def _write(content: bytes, library: Path, extension_folder: Path, version: str) -> tuple[Path, ...]:
    """Write the library, the control file and the scripts, also those that update from versions in the folder."""
    texts = ExtensionTexts(
        EXTENSION, version, control_file(version), install=install_script(version), update=update_script(version)
    )
    with reporting_with("run as a user who may write there, or build into a folder of your own"):
        write_whole(library, content, 0o755)
        return (library, *texts.write(extension_folder))
