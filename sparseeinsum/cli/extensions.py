"""The command line: the commands build, install and remove, for the extension of database servers."""

import argparse
from pathlib import Path

from sparseeinsum import __version__
from sparseeinsum.cli.usage import UsageError
from sparseeinsum.engines.postgresql.installed_functions import install_portable, remove_portable
from sparseeinsum.environment.extras import imported
from sparseeinsum.kernels.libraries import DUCKDB_FILE
from sparseeinsum.kernels.postgresql.installation import (
    find_server,
    install_extension,
    remove_extension,
    write_extension,
)
from sparseeinsum.kernels.postgresql.portable.portable_script import psql_script
from sparseeinsum.kernels.postgresql.python import install_python
from sparseeinsum.kernels.shipping import duckdb_extension
from sparseeinsum.kernels.whole_files import write_whole

_POSTGRES_OPTIONS = ("version", "portable", "schema")
_LIBRARY_OPTIONS = ("pg_config", "python")
_PORTABLE_OPTIONS = ("schema",)


def build(arguments: argparse.Namespace) -> None:
    """Write the files of the extension, or the portable script, into a folder, and print how to use them."""
    folder = Path(arguments.output)
    if arguments.server == "dbt":
        _build_for_dbt(arguments, folder)
        return
    folder.mkdir(parents=True, exist_ok=True)
    if arguments.server == "duckdb":
        _build_for_duckdb(arguments, folder)
    elif arguments.portable:
        _build_portable(arguments, folder)
    else:
        _build_for_postgres(arguments, folder)


def _build_for_duckdb(arguments: argparse.Namespace, folder: Path) -> None:
    _refuse(arguments, _POSTGRES_OPTIONS, "is for postgres; the file is the same for every DuckDB from 1.5.6 on")
    path = folder / DUCKDB_FILE
    write_whole(path, duckdb_extension(arguments.processor, __version__))
    print(path)
    loaded = path if path.is_absolute() else f"./{path}"  # DuckDB only treats names with a slash as paths
    print(f"Then, in duckdb -unsigned: LOAD '{loaded}';")


def _build_for_dbt(arguments: argparse.Namespace, folder: Path) -> None:
    _refuse(arguments, _POSTGRES_OPTIONS, "is for postgres; the package is the same for all databases of dbt")
    package = imported("sparseeinsum.dbt_project.package", "dbt", "the package for dbt")
    for path in package.write_package(folder):
        print(path)
    print(f"Then, in the project's packages.yml, below `packages:`, `  - local: {folder}`; and run: dbt deps")


def _build_portable(arguments: argparse.Namespace, folder: Path) -> None:
    _refuse(arguments, ("version",), "is for the extension; the portable script is the same for all versions")
    script = folder / "sparseeinsum_portable.sql"
    write_whole(script, psql_script(__version__, arguments.schema or "public").encode(), 0o644)
    print(script)
    print("Run it as a user who may create functions: psql --file sparseeinsum_portable.sql DATABASE-URL")


def _build_for_postgres(arguments: argparse.Namespace, folder: Path) -> None:
    _refuse(arguments, ("schema",), "is for --portable; for the extension, use CREATE EXTENSION ... SCHEMA")
    major = find_server().major if arguments.version is None else arguments.version
    for path in write_extension(folder, major, __version__, arguments.processor):
        print(path)
    print("Copy the library to the folder that pg_config --pkglibdir names on the server, the others to")
    print("$(pg_config --sharedir)/extension. Then, in psql: CREATE EXTENSION sparseeinsum;")


def install(arguments: argparse.Namespace) -> None:
    """Install the extension on this machine's server, or portable functions in a database; print the next step."""
    if arguments.portable is not None:
        _install_portable(arguments)
        return
    _refuse(arguments, _PORTABLE_OPTIONS, "is for --portable; the extension is for a server, not for one database")
    server = find_server(arguments.pg_config)
    for path in install_extension(server, __version__):
        print(path)
    if arguments.python:
        for path in install_python(server, __version__):
            print(path)
    print("Now, in psql: CREATE EXTENSION sparseeinsum; or, if it exists: ALTER EXTENSION sparseeinsum UPDATE;")
    if arguments.python:
        print("and CREATE EXTENSION sparseeinsum_python CASCADE; drop it first if it is from another Python.")


def _install_portable(arguments: argparse.Namespace) -> None:
    _refuse(arguments, _LIBRARY_OPTIONS, "is for the extension; --portable needs only the URL of a database")
    schema = install_portable(arguments.portable, arguments.schema)
    print(f"the functions are in schema {schema}; after an upgrade of sparseeinsum, run this again")


def remove(arguments: argparse.Namespace) -> None:
    """Remove the files of the extension from this machine's server, or portable functions from a database."""
    if arguments.portable is not None:
        _refuse(arguments, ("pg_config",), "is for the extension; --portable needs only the URL of a database")
        remove_portable(arguments.portable)
        print("the portable functions are dropped")
        return
    for path in remove_extension(find_server(arguments.pg_config)):
        print(f"{path} is removed")
    print("Databases that have the extension need DROP EXTENSION IF EXISTS sparseeinsum_python, sparseeinsum;")


def _refuse(arguments: argparse.Namespace, names: tuple[str, ...], reason: str) -> None:
    """Refuse the options `names` if they are given; `reason` completes the message."""
    for name in names:
        if getattr(arguments, name):
            raise UsageError(f"--{name.replace('_', '-')} {reason}")
