"""The command line: results as tables for people, and as CSV, JSON, Arrow or Parquet for programs.

All of them but tables have all rows of a result. CSV and JSON are in UTF-8, whatever the locale.
"""

import argparse
import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

import pyarrow as pa
import pyarrow.csv
from pyarrow import parquet

import sparseeinsum as se
from sparseeinsum.cli.output import print_preview, print_status
from sparseeinsum.cli.usage import UsageError
from sparseeinsum.plans.json_values import JsonValue, json_value
from sparseeinsum.results.parquet_files import whole_file

_TABLE = "table"
_ROWS = 10
_BATCH = 10_000  # rows that are made texts at a time


@dataclass(frozen=True, slots=True)
class ResultOutput:
    """Where results go, and in which format.

    Attributes:
        format: `table`, or a key of WRITERS.
        path: The file; None for standard output.
        rows: The number of rows of a table.
    """

    format: str
    path: Path | None
    rows: int

    def check_room_for(self, names: Sequence[str]) -> None:
        """Refuse several results where the format has room for one.

        Raises:
            UsageError: Names the results.
        """
        if self.format == _TABLE or len(names) == 1:
            return
        if not names:
            raise UsageError(f"--format {self.format} writes one result, but all go into tables; leave it out")
        raise UsageError(
            f"--format {self.format} writes one result, and there are {', '.join(names)}; choose one, as in "
            f"--result {names[0]}"
        )

    def write(self, results: Sequence[se.TensorResult]) -> None:
        """Show results as tables, or write the only one.

        Raises:
            DataError: The folder of the file does not exist.
        """
        if self.format == _TABLE:
            for result in results:
                print_preview(result.preview(self.rows))
            return
        (result,) = results
        if self.format not in _BINARY and result.fill != 0:  # Arrow and Parquet have it in their metadata
            print_status(f"{result.name} holds {result.fill} wherever no row says otherwise")
        with _opened(self.path) as file:
            WRITERS[self.format](result, file)


def result_output(arguments: argparse.Namespace) -> ResultOutput:
    """The output that parsed arguments ask for; the format is that of the file's name if they name no format.

    Raises:
        UsageError: The arguments contradict each other.
    """
    path = None if arguments.output is None else Path(arguments.output)
    written = arguments.format or (_TABLE if path is None else path.suffix.removeprefix("."))
    if path is not None and written not in WRITERS:
        raise UsageError(f"--output {path} needs a format for programs; add one, as in --format csv")
    if written != _TABLE and arguments.rows is not None:
        raise UsageError(f"--rows is for tables; {written} has all rows")
    if written in _BINARY and path is None and sys.stdout.isatty():
        raise UsageError(f"{written} is no text for a terminal; add --output FILE, or send it to another program")
    return ResultOutput(written, path, _ROWS if arguments.rows is None else arguments.rows)


@contextmanager
def _opened(path: Path | None) -> Iterator[BinaryIO]:
    """The file to write, which replaces an existing one when it is complete; standard output without a path."""
    if path is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with whole_file(path) as partial, partial.open("wb") as file:
        yield file


def _write_csv(result: se.TensorResult, file: BinaryIO) -> None:
    """A line of column names, then one line for every row; texts are quoted as in RFC 4180."""
    table = result.arrow().flatten()
    texts = pa.schema(
        field.with_type(pa.string()) if isinstance(field.type, pa.BaseExtensionType) else field
        for field in table.schema
    )
    with _text(file) as text:
        csv.writer(text, lineterminator="\n").writerow(table.column_names)
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed")
    pyarrow.csv.write_csv(table.cast(texts), file, options)


def _write_json(result: se.TensorResult, file: BinaryIO) -> None:
    """An array with one object for every row, each on a line of its own, as the duckdb command line writes it."""
    table = result.arrow()
    names = table.column_names
    separator = "["
    with _text(file) as text:
        for row in _rows(table):
            text.write(separator + json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False))
            separator = ",\n"
        text.write("]\n" if separator != "[" else "[]\n")


def _write_arrow(result: se.TensorResult, file: BinaryIO) -> None:
    """A stream of Arrow's IPC format."""
    table = result.arrow()
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


def _write_parquet(result: se.TensorResult, file: BinaryIO) -> None:
    buffer = pa.BufferOutputStream()  # Parquet is written from the end of the file, where standard output has none
    parquet.write_table(result.arrow(), buffer)
    file.write(buffer.getvalue())


WRITERS: Mapping[str, Callable[[se.TensorResult, BinaryIO], None]] = {
    "csv": _write_csv,
    "json": _write_json,
    "arrow": _write_arrow,
    "parquet": _write_parquet,
}
_BINARY = ("arrow", "parquet")


@contextmanager
def _text(file: BinaryIO) -> Iterator[IO[str]]:
    """A text file over a binary one, which stays open."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    try:
        yield text
    finally:
        text.detach()


def _rows(table: pa.Table) -> Iterator[tuple[JsonValue, ...]]:
    """The rows of a table, with values as JSON has them."""
    for batch in table.to_batches(_BATCH):
        yield from zip(*map(_json_values, batch.columns), strict=True)


def _json_values(column: pa.Array) -> list[JsonValue]:
    values: list[JsonValue] = column.to_pylist()
    is_json = pa.types.is_integer(column.type) or pa.types.is_boolean(column.type) or pa.types.is_string(column.type)
    return values if is_json else [json_value(value) for value in values]
