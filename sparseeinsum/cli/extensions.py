"""The command line: extensions for database servers, made and installed."""

import argparse
from pathlib import Path

from sparseeinsum import __version__
from sparseeinsum.kernels.postgres_installation import find_server, install_extension, write_extension
from sparseeinsum.kernels.postgres_python import install_python
from sparseeinsum.kernels.processors import PROCESSORS

__all__ = ["PROCESSORS", "build", "install"]


def build(asked: argparse.Namespace) -> None:
    """Write the files of the extension into a folder, and say what to do with them."""
    folder = Path(asked.output)
    folder.mkdir(parents=True, exist_ok=True)
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
