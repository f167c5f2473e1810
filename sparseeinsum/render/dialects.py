"""Render: what differs between engines, as data."""

from dataclasses import dataclass, replace

from sqlglot import exp

from sparseeinsum.render.postgresql import Citus, PostgreSQL


@dataclass(frozen=True, slots=True)
class Dialect:
    """One engine's ways.

    Attributes:
        name: Of the dialect in sqlglot, and of the engine's folder in stats/.
        aliases: Other names that users may give it.
        temporary_schema: Where temporary tables lie.
        default_schema: That of a table of which only the database is named; None where that cannot be.
        probe_hint: Table function without rows that makes the side of a join with arrays probe; None where the
            engine needs none.
        row_number: Pseudo-column that numbers a table's rows from 0; None where there is none, or no need of it.
        rows_per_thread: Rows of a table that one thread scans at least.
        entry_bytes: That a tuple of two keys and a number takes in a table, about.
        vector_rows: Rows that it hands to a function at once.
        largest_inline: Bytes up to which an array lies in its row; a longer one is fetched anew at every use. None
            where all do.
        casts_truth: Whether a cast makes numbers of truth.
        raises_out_of_range: Whether + - * / of floating-point numbers are errors where a result is infinite, or
            rounded to 0.
        looks_up_by_index: Whether a few rows of a table are found by an index of it, so that it pays to have one.
        reads_files: Whether a path stands for the rows of a file.
        writes_files: Whether it writes rows into files where the user is.
        calls_python: Whether functions of users run in it.
        keeps_residents: Whether functions can read an array that a statement keeps in memory.
        moves_expressions: Whether an expression of a query is computed where others read it, each time that they do.
        computes_whole: Whether a CTE that is materialised is computed whole, however much of it is read.
        spills_states: Whether aggregation states that are arrays keep to the memory that a statement may take.
        has_workers: Whether parts of a statement run in processes that share tables and hash tables, but no CTEs.
        catalogue_scripts: Assets that make the catalogue, in order.
        dictionary_schema: Where new dictionaries lie.
        distributes: Whether tables are spread over machines, so that every operator fills one in its place.
    """

    name: str
    aliases: tuple[str, ...]
    temporary_schema: str
    default_schema: str | None
    probe_hint: str | None
    row_number: str | None
    rows_per_thread: int
    entry_bytes: int
    vector_rows: int
    largest_inline: int | None
    casts_truth: bool
    raises_out_of_range: bool
    looks_up_by_index: bool
    reads_files: bool
    writes_files: bool
    calls_python: bool
    keeps_residents: bool
    moves_expressions: bool
    computes_whole: bool
    spills_states: bool
    has_workers: bool
    catalogue_scripts: tuple[str, ...]
    dictionary_schema: str
    distributes: bool = False


DUCKDB = Dialect(
    name="duckdb",
    aliases=(),
    temporary_schema="temp",
    default_schema="main",
    probe_hint="tensor_no_tuples",
    row_number="rowid",
    rows_per_thread=122_880,
    entry_bytes=16,  # before compression
    vector_rows=2048,  # duckdb_vector_size of duckdb.h
    largest_inline=None,
    casts_truth=True,
    raises_out_of_range=False,
    looks_up_by_index=False,
    reads_files=True,
    writes_files=True,
    calls_python=True,
    keeps_residents=True,
    moves_expressions=False,
    computes_whole=True,
    spills_states=False,
    has_workers=False,
    catalogue_scripts=("sql/catalogue.sql",),
    dictionary_schema="sparseeinsum",
)
POSTGRESQL = Dialect(
    name=PostgreSQL.__name__.lower(),
    aliases=("postgres",),
    temporary_schema="pg_temp",
    default_schema=None,
    probe_hint=None,
    row_number=None,
    rows_per_thread=1,
    entry_bytes=44,  # with the header of a row, 24, and its place in a page, 4
    vector_rows=1,
    largest_inline=8_000,
    casts_truth=False,
    raises_out_of_range=True,
    looks_up_by_index=True,
    reads_files=False,
    writes_files=False,
    calls_python=False,
    keeps_residents=False,
    moves_expressions=True,
    computes_whole=False,
    spills_states=True,
    has_workers=True,
    catalogue_scripts=("sql/catalogue.sql", "sql/postgresql/row_level_security.sql"),
    dictionary_schema="sparseeinsum_dictionaries",  # where roles may make tables, but would make no function of ours
)
CITUS = replace(POSTGRESQL, name=Citus.__name__.lower(), has_workers=False, distributes=True)


def write_sql(statement: exp.Expr, dialect: Dialect) -> str:
    """A statement as text, one clause a line, identifiers quoted where they must be."""
    return statement.sql(dialect.name, pretty=True, normalize_functions=False, max_text_width=100)
