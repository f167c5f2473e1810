"""Kernels: PostgreSQL's extension sparseeinsum_python, by which the server's Python plans programs, as files."""

import re
import sys
from pathlib import Path
from string import Template

from sparseeinsum import assets
from sparseeinsum.errors import ExtensionError
from sparseeinsum.kernels.postgresql.installation import Server
from sparseeinsum.kernels.postgresql.script import PYTHON_EXTENSION as EXTENSION
from sparseeinsum.kernels.postgresql.texts import ExtensionTexts, refused_with

_PACKAGE = assets.__name__.partition(".")[0]


def install_python(server: Server, version: str) -> tuple[Path, ...]:
    """Put control file and scripts where a server looks for them; returns their paths.

    The scripts name the folders of this Python's packages, which the server's Python will import.

    Raises:
        ExtensionError: The server has no PL/Python, or of another version; or a folder cannot be written.
    """
    _check_language(server)
    script, control = _script(version), _fill(f"{EXTENSION}.control", version=version)
    texts = ExtensionTexts(EXTENSION, version, control, install=script, update=script)
    with refused_with("run as a user who may write there"):
        return texts.write(server.extension_folder)


def _check_language(server: Server) -> None:
    """Refuse a server whose Python could not import the packages of this one, which have compiled parts."""
    if not (server.extension_folder / "plpython3u.control").is_file():
        raise ExtensionError(
            f"this PostgreSQL has no PL/Python; install it first, as in apt-get install "
            f"postgresql-plpython3-{server.major}"
        )
    for library in server.library_folder.glob("plpython3.*"):
        found = re.search(rb"libpython(3\.\d+)", library.read_bytes())
        if found is not None and found[1].decode() != _this_python():
            raise ExtensionError(
                f"this is Python {_this_python()}, and PostgreSQL's is {found[1].decode()}; install sparseeinsum with "
                "that one, and run this command from there"
            )


def _this_python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _script(version: str) -> str:
    folders = package_folders()
    if any("$" in folder for folder in folders):
        raise ExtensionError(f"a folder of {', '.join(folders)} has a $ in its name; install sparseeinsum elsewhere")
    return _fill("python.sql", version=version, python=_this_python(), folders=repr(folders))


def package_folders() -> list[str]:
    """Where this Python finds this package and those that it needs, first what comes first."""
    folders = (Path(entry).resolve() for entry in sys.path if entry)
    return list(dict.fromkeys(str(folder) for folder in folders if _holds_packages(folder)))


def _holds_packages(folder: Path) -> bool:
    return folder.name in ("site-packages", "dist-packages") or (folder / _PACKAGE / "__init__.py").is_file()


def _fill(template: str, /, **values: object) -> str:
    return Template(assets.read(f"sql/postgresql/{template}")).substitute(values)
