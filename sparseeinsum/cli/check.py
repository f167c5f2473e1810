"""The command line: the command check, which reports errors of programs in lines that editors can parse."""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

import sparseeinsum as se
from sparseeinsum.cli.database_opening import open_database
from sparseeinsum.cli.program_arguments import STANDARD_INPUT, parameters_of
from sparseeinsum.language.program_files import read_source
from sparseeinsum.language.syntax import SourceText
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.pipeline.checking import Finding, check_source

_ERRORS = 1  # the exit status if there are errors


def check(arguments: argparse.Namespace) -> int:
    """Print all findings in some files; returns the exit status, 1 if there are errors."""
    if arguments.database is None:
        findings = _findings(arguments, None)
    else:
        with open_database(arguments.database, read_only=True) as database:
            findings = _findings(arguments, database)
    if arguments.format == "json":
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            print(f"{finding.file}:{finding.line}:{finding.column}: {finding.severity}: {finding.message}")
    return _ERRORS if any(finding.severity == "error" for finding in findings) else 0


def _findings(arguments: argparse.Namespace, database: se.Database | None) -> list[Finding]:
    """The findings in all files. Each occurs once, even if several files include the same file."""
    parameters = parameters_of(arguments)
    findings = [finding for file in arguments.files for finding in _findings_in(file, parameters, database)]
    return list(dict.fromkeys(findings))


def _findings_in(file: str, parameters: Mapping[str, Number], database: se.Database | None) -> Iterable[Finding]:
    try:
        is_input = file == STANDARD_INPUT
        source = SourceText(sys.stdin.read(), "<stdin>") if is_input else read_source(Path(file))
    except se.ParseError as error:
        return [Finding(file, error.line, error.column, "error", error.problem)]
    folder = Path() if is_input else Path(file).parent
    if database is None:
        return check_source(source, folder, parameters, None)
    return database.check(source, folder, parameters)
