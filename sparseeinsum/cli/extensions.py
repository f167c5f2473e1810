"""The command line: extensions for database servers, made and installed."""

import argparse
from pathlib import Path

from sparseeinsum import __version__
from sparseeinsum.errors import ExtensionError
from sparseeinsum.kernels.duckdb_library import build_extension
from sparseeinsum.kernels.postgres_installation import find_server, install_extension, write_extension
from sparseeinsum.kernels.postgres_python import install_python
from sparseeinsum.kernels.processors import PROCESSORS

__all__ = ["PROCESSORS", "build", "install"]


def build(asked: argparse.Namespace) -> None:
    """Write the files of the extension into a folder, and say what to do with them."""
    folder = Path(asked.output)
    folder.mkdir(parents=True, exist_ok=True)
    (_build_for_duckdb if asked.server == "duckdb" else _build_for_postgres)(asked, folder)


def _build_for_duckdb(asked: argparse.Namespace, folder: Path) -> None:
    if asked.version is not None:
        raise ExtensionError("--version is for postgres; one file is for every DuckDB from 1.5.6 on")
    path = build_extension(folder, __version__, asked.processor)
    print(path)
    print(f"Then, in duckdb -unsigned: LOAD '{path}';")


def _build_for_postgres(asked: argparse.Namespace, folder: Path) -> None:
    major = find_server().major if asked.version is None else asked.version
    for path in write_extension(folder, folder, major, __version__, asked.processor):
        print(path)
    print("Copy the .so to the folder that pg_config --pkglibdir names on the server, the others to")
    print("$(pg_config --sharedir)/extension. Then, in psql: CREATE EXTENSION sparseeinsum;")


def install(asked: argparse.Namespace) -> None:
    """Put the files where the server finds them, and say what to do in the database."""
    server = find_server(asked.pg_config)
    for path in install_extension(server, __version__):
        print(path)
    if asked.python:
        for path in install_python(server, __version__):
            print(path)
    print("Now, in psql: CREATE EXTENSION sparseeinsum; or, where it is: ALTER EXTENSION sparseeinsum UPDATE;")
    if asked.python:
        print("and CREATE EXTENSION sparseeinsum_python CASCADE; drop it first where it is from another Python.")
