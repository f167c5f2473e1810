"""The command line: functions for database servers, made and installed."""

import argparse
from pathlib import Path

from sparseeinsum import __version__
from sparseeinsum.engines.postgresql.installed_functions import install_portable, remove_portable
from sparseeinsum.errors import ExtensionError
from sparseeinsum.extras import imported
from sparseeinsum.kernels.libraries import DUCKDB_FILE
from sparseeinsum.kernels.postgresql.installation import (
    find_server,
    install_extension,
    remove_extension,
    write_extension,
)
from sparseeinsum.kernels.postgresql.portable.script import psql_script
from sparseeinsum.kernels.postgresql.python import install_python
from sparseeinsum.kernels.shipping import duckdb_extension
from sparseeinsum.kernels.whole_files import write_whole

_OF_POSTGRES = ("version", "portable", "schema")
_OF_LIBRARIES = ("pg_config", "python")
_OF_PORTABLE = ("schema",)


def build(asked: argparse.Namespace) -> None:
    """Write the files of the extension, or the portable script, into a folder, and say what to do with them."""
    folder = Path(asked.output)
    if asked.server == "dbt":
        _build_for_dbt(asked, folder)
        return
    folder.mkdir(parents=True, exist_ok=True)
    if asked.server == "duckdb":
        _build_for_duckdb(asked, folder)
    elif asked.portable:
        _build_portable(asked, folder)
    else:
        _build_for_postgres(asked, folder)


def _build_for_duckdb(asked: argparse.Namespace, folder: Path) -> None:
    _refuse(asked, _OF_POSTGRES, "is for postgres; one file is for every DuckDB from 1.5.6 on")
    path = folder / DUCKDB_FILE
    write_whole(path, duckdb_extension(asked.processor, __version__))
    print(path)
    loaded = path if path.is_absolute() else f"./{path}"  # DuckDB takes no name for a path that has no slash
    print(f"Then, in duckdb -unsigned: LOAD '{loaded}';")


def _build_for_dbt(asked: argparse.Namespace, folder: Path) -> None:
    _refuse(asked, _OF_POSTGRES, "is for postgres; one package is for all of dbt's databases")
    package = imported("sparseeinsum.dbt_project.package", "dbt", "the package for dbt")
    for path in package.write_package(folder):
        print(path)
    print(f"Then, in the project's packages.yml, below `packages:`, `  - local: {folder}`; and run: dbt deps")


def _build_portable(asked: argparse.Namespace, folder: Path) -> None:
    _refuse(asked, ("version",), "is of the extension; the portable script is the same for all")
    script = folder / "sparseeinsum_portable.sql"
    write_whole(script, psql_script(__version__, asked.schema or "public").encode(), 0o644)
    print(script)
    print("Run it as a user who may create functions: psql --file sparseeinsum_portable.sql DATABASE-URL")


def _build_for_postgres(asked: argparse.Namespace, folder: Path) -> None:
    _refuse(asked, ("schema",), "is for --portable; CREATE EXTENSION has a SCHEMA of its own")
    major = find_server().major if asked.version is None else asked.version
    for path in write_extension(folder, major, __version__, asked.processor):
        print(path)
    print("Copy the library to the folder that pg_config --pkglibdir names on the server, the others to")
    print("$(pg_config --sharedir)/extension. Then, in psql: CREATE EXTENSION sparseeinsum;")


def install(asked: argparse.Namespace) -> None:
    """Put the extension where the server finds it, or portable functions into a database; say what to do then."""
    if asked.portable is not None:
        _install_portable(asked)
        return
    _refuse(asked, _OF_PORTABLE, "is for --portable; the extension is for a server, not for one database")
    server = find_server(asked.pg_config)
    for path in install_extension(server, __version__):
        print(path)
    if asked.python:
        for path in install_python(server, __version__):
            print(path)
    print("Now, in psql: CREATE EXTENSION sparseeinsum; or, where it is: ALTER EXTENSION sparseeinsum UPDATE;")
    if asked.python:
        print("and CREATE EXTENSION sparseeinsum_python CASCADE; drop it first where it is from another Python.")


def _install_portable(asked: argparse.Namespace) -> None:
    _refuse(asked, _OF_LIBRARIES, "is of the extension; --portable needs a database's URL alone")
    if asked.portable is None:
        raise ExtensionError(
            "name the database, as in: sparseeinsum install postgres --portable postgresql://me@host/db"
        )
    schema = install_portable(asked.portable, asked.schema)
    print(f"the functions are in schema {schema}; after an upgrade of sparseeinsum, run this again")


def remove(asked: argparse.Namespace) -> None:
    """Take files of the extension away from the server, or portable functions from a database."""
    if asked.portable is not None:
        _refuse(asked, ("pg_config",), "is of the extension; --portable needs a database's URL alone")
        remove_portable(asked.portable)
        print("the portable functions are gone")
        return
    for path in remove_extension(find_server(asked.pg_config)):
        print(f"{path} is gone")
    print("Databases that have the extension need DROP EXTENSION IF EXISTS sparseeinsum_python, sparseeinsum;")


def _refuse(asked: argparse.Namespace, names: tuple[str, ...], reason: str) -> None:
    """Refuse options that the variant asked for has no use for."""
    for name in names:
        if getattr(asked, name):
            raise ExtensionError(f"--{name.replace('_', '-')} {reason}")
