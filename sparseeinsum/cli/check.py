"""The command line: what is wrong with programs, in lines that editors read."""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

import sparseeinsum as se
from sparseeinsum.cli.commands import STANDARD_INPUT, open_database, parameters_of
from sparseeinsum.language.files import read_source
from sparseeinsum.language.syntax import Source
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.pipeline.checking import Finding, check_source

_ERRORS = 1  # the exit status where there are some


def check(asked: argparse.Namespace) -> int:
    """Print all that is wrong with some files; returns the exit status, 1 if there are errors."""
    if asked.database is None:
        found = _findings(asked, None)
    else:
        with open_database(asked.database) as database:
            found = _findings(asked, database)
    for each in found:
        if asked.json:
            print(json.dumps(asdict(each)))
        else:
            print(f"{each.file}:{each.line}:{each.column}: {each.severity}: {each.message}")
    return _ERRORS if any(each.severity == "error" for each in found) else 0


def _findings(asked: argparse.Namespace, database: se.Database | None) -> Iterable[Finding]:
    """Those of all files, each once: a file may be included by several."""
    return dict.fromkeys(each for file in asked.files for each in _findings_in(file, parameters_of(asked), database))


def _findings_in(file: str, parameters: Mapping[str, Number], database: se.Database | None) -> Iterable[Finding]:
    try:
        is_input = file == STANDARD_INPUT
        source = Source(sys.stdin.read(), "<stdin>") if is_input else read_source(Path(file))
    except se.ParseError as error:
        return [Finding(file, error.line, error.column, "error", error.problem)]
    folder = Path() if is_input else Path(file).parent
    if database is None:
        return check_source(source, folder, parameters, None)
    return database.check(source, folder, parameters)
