"""Kernels: PostgreSQL's extension as files: for the server of a `pg_config`, or in a folder for a server elsewhere."""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from sparseeinsum.errors import ExtensionError
from sparseeinsum.kernels.postgresql.script import (
    EXTENSION,
    PYTHON_EXTENSION,
    control_file,
    install_script,
    update_script,
)
from sparseeinsum.kernels.postgresql.texts import ExtensionTexts, extension_files, refused_with
from sparseeinsum.kernels.shipping import postgresql_library
from sparseeinsum.kernels.whole_files import write_whole

_DEBIAN = Path("/usr/lib/postgresql")  # where Debian keeps a folder for every major version
_DYLIBS_SINCE = 16  # the major version from which on macOS' servers look for files so named


@dataclass(frozen=True, slots=True)
class Server:
    """A PostgreSQL that is installed here, as its `pg_config` tells."""

    major: int
    library_folder: Path
    extension_folder: Path


def find_server(pg_config: str | None = None) -> Server:
    """The server of a `pg_config`, by default the one on the path or the only one of Debian's.

    Raises:
        ExtensionError: There is none, there are several, or it does not answer.
    """
    program = _find_pg_config() if pg_config is None else pg_config
    found = _VERSION.match(_ask(program, "--version"))
    if found is None:
        raise ExtensionError(f"{program} --version does not tell the version of a PostgreSQL")
    share = Path(_ask(program, "--sharedir"))
    return Server(int(found[1]), Path(_ask(program, "--pkglibdir")), share / "extension")


_VERSION = re.compile(r"PostgreSQL (\d+)")


def _find_pg_config() -> str:
    on_path = shutil.which("pg_config")
    of_debian = sorted(map(str, _DEBIAN.glob("*/bin/pg_config")))
    if len(of_debian) > 1:
        raise ExtensionError(f"there are several PostgreSQLs; name one with --pg-config: {', '.join(of_debian)}")
    if not (of_debian or on_path):
        raise ExtensionError("no pg_config found; install PostgreSQL, or name its pg_config with --pg-config")
    return of_debian[0] if of_debian else str(on_path)


def _ask(program: str, option: str) -> str:
    try:
        finished = subprocess.run([program, option], capture_output=True, text=True, check=False)
    except OSError as error:
        raise ExtensionError(f"{program} cannot be run: {error}") from error
    if finished.returncode != 0:
        raise ExtensionError(f"{program} {option} failed: {finished.stderr.strip()}")
    return finished.stdout.strip()


def install_extension(server: Server, version: str) -> tuple[Path, ...]:
    """Put library, control file and scripts where a server looks for them; returns their paths.

    Databases that have an earlier version keep its functions, which do not find the new library's, until
    `ALTER EXTENSION sparseeinsum UPDATE`.

    Raises:
        ExtensionError: The version is not supported, a folder cannot be written, or linking failed.
    """
    content = postgresql_library(None, server.major, version, is_for_here=True)
    library = server.library_folder / f"{EXTENSION}{_suffix(server.major)}"
    return _write(content, library, server.extension_folder, version)


def remove_extension(server: Server) -> tuple[Path, ...]:
    """Remove all that `install_extension` and `install_python` put where a server looks for it; returns the paths.

    Raises:
        ExtensionError: There is nothing, or a file cannot be removed.
    """
    folder = server.extension_folder
    texts = (path for name in (EXTENSION, PYTHON_EXTENSION) for path in extension_files(folder, name))
    library = server.library_folder / f"{EXTENSION}{_suffix(server.major)}"
    files = tuple(path for path in (*texts, library) if path.is_file())
    if not files:
        raise ExtensionError(f"there are no files of sparseeinsum in {folder} and {server.library_folder}")
    with refused_with("run as a user who may write there"):
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
    """How the name of a library ends that a server loads."""
    return ".dylib" if sys.platform == "darwin" and major >= _DYLIBS_SINCE else ".so"


def _write(content: bytes, library: Path, extension_folder: Path, version: str) -> tuple[Path, ...]:
    """Write the library, and the texts; scripts lead here from each version whose script is there."""
    texts = ExtensionTexts(
        EXTENSION, version, control_file(version), install=install_script(version), update=update_script(version)
    )
    with refused_with("run as a user who may write there, or build into a folder of your own"):
        write_whole(library, content, 0o755)
        return (library, *texts.write(extension_folder))
