"""Kernels: installs PostgreSQL's extension sparseeinsum_python, with which the server's Python plans programs."""

import re
import sys
from pathlib import Path

from sparseeinsum.environment import assets
from sparseeinsum.errors import ExtensionError
from sparseeinsum.kernels.postgresql.extension_script import PYTHON_EXTENSION as EXTENSION
from sparseeinsum.kernels.postgresql.installation import InstalledServer
from sparseeinsum.kernels.postgresql.linking_names import WITH_COLUMNS
from sparseeinsum.kernels.postgresql.templates import fill
from sparseeinsum.kernels.postgresql.texts import ExtensionTexts, reporting_with

_PACKAGE = assets.__name__.partition(".")[0]

# The functions that call Python, by their volatility. Queries of stable ones see the rows that their caller sees.
_CALLS = {
    "volatile": {"volatility": "VOLATILE", "call": "call_python", "result": "python_result"},
    "stable": {"volatility": "STABLE", "call": "call_python_to_read", "result": "result_of_reading"},
}


def install_python(server: InstalledServer, version: str) -> tuple[Path, ...]:
    """Write control file and scripts to the folders of a server; returns their paths.

    The scripts contain the folders of this Python's packages, from which the server's Python will import.

    Raises:
        ExtensionError: The server has no PL/Python, or that of another Python version; or a folder cannot be written.
    """
    _check_language(server)
    script, control = _script(version), fill(f"{EXTENSION}.control", version=version)
    texts = ExtensionTexts(EXTENSION, version, control, install=script, update=script)
    with reporting_with("run as a user who may write there"):
        return texts.write(server.extension_folder)


def _check_language(server: InstalledServer) -> None:
    """Raise ExtensionError if the server's Python could not import this one's packages, which have compiled parts."""
    if not (server.extension_folder / "plpython3u.control").is_file():
        raise ExtensionError(
            f"this PostgreSQL has no PL/Python; install it first, as in apt-get install "
            f"postgresql-plpython3-{server.major}"
        )
    for library in server.library_folder.glob("plpython3.*"):
        match = re.search(rb"libpython(3\.\d+)", library.read_bytes())
        if match is not None and match[1].decode() != _this_python():
            raise ExtensionError(
                f"this is Python {_this_python()}, and PostgreSQL's is {match[1].decode()}; install sparseeinsum with "
                "that one, and run this command from there"
            )


def _this_python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _script(version: str) -> str:
    folders = package_folders()
    if any("$" in folder for folder in folders):
        raise ExtensionError(f"a folder of {', '.join(folders)} has a $ in its name; install sparseeinsum elsewhere")
    values = {"version": version, "python": _this_python(), "folders": repr(folders)}
    calls = {f"{kind}_calls": fill("python_calls.sql", **values, **names) for kind, names in _CALLS.items()}
    return fill("python.sql", version=version, with_columns=WITH_COLUMNS, **calls)


def package_folders() -> list[str]:
    """List the folders where this Python finds this package and its dependencies, in the order of `sys.path`."""
    folders = (Path(entry).resolve() for entry in sys.path if entry)
    return list(dict.fromkeys(str(folder) for folder in folders if _contains_packages(folder)))


def _contains_packages(folder: Path) -> bool:
    return folder.name in ("site-packages", "dist-packages") or (folder / _PACKAGE / "__init__.py").is_file()
