"""Render: the differences between engines, as data."""

from dataclasses import dataclass, replace

from sqlglot import exp

from sparseeinsum.render.plain_sql.dialect_spelling import Spelling
from sparseeinsum.render.plain_sql.plain_statements import plain_text
from sparseeinsum.render.postgresql import Citus, PostgreSQL


@dataclass(frozen=True, slots=True)
class Dialect:
    """The differences of an engine's SQL and of how it executes statements.

    Attributes:
        name: The name of the dialect in sqlglot, and of the engine's folder in stats/.
        aliases: Other names that users may give it.
        temporary_schema: The schema of temporary tables.
        default_schema: The schema of a table of which only the database is named; None where that cannot be.
        probe_hint: A table function without rows that makes the side of a join with arrays probe; None if the engine
            needs none.
        probes_first: Whether the first operand of a join probes, so that no hint is needed.
        nests_queries: Whether a CTE that is read once takes longer than the same query where it is read.
        row_number: The pseudo-column that numbers the rows of a table from 0; None if there is none, or no need of it.
        rows_per_thread: The least number of rows of a table that one thread scans.
        entry_bytes: About how many bytes a tuple of two keys and a number takes in a table.
        vector_rows: The number of rows that it passes to a function at once.
        largest_inline: The number of bytes up to which an array is stored in its row; a larger array is fetched again
            at every use. None if rows hold all arrays.
        casts_truth: Whether a cast converts booleans to numbers.
        raises_out_of_range: Whether + - * / of floating-point numbers raise an error if a result is infinite, or
            rounded to 0.
        looks_up_by_index: Whether an index of a table finds a few of its rows, so that it pays to have one.
        reads_files: Whether a path in a FROM clause stands for the rows of a file.
        writes_files: Whether it writes rows into files on the machine of the user.
        calls_python: Whether it runs functions of users in Python.
        keeps_residents: Whether functions can read an array that a statement keeps in memory.
        largest_gathered: The bytes of the largest dense operand that a statement may have as one array, of which sums
            over the entries of rows are computed; None if there are no such sums.
        stores_lists: Whether tables can hold entries in lists.
        moves_expressions: Whether an expression of a query is computed where outer queries read it, every time that
            they do.
        computes_whole: Whether a materialised CTE is computed completely, however much of it is read.
        spills_states: Whether aggregation states that are arrays keep to the memory limit of a statement.
        has_workers: Whether parts of a statement run in processes that share tables and hash tables, but not CTEs.
        joins_rows: Whether several EinSums are computed in one SELECT over one join of what they read.
        chains_arrays: Whether several EinSums over single arrays are computed in one row, each in a column.
        forgets_own_rows: Whether rows that a transaction both adds and removes take no space after it.
        has_snapshots: Whether all statements of every transaction see the data of the time when it began.
        catalogue_scripts: The assets that create the catalogue, in order.
        changes_script: The asset that creates the log of changes of tensors, if that is not made for a table.
        dictionary_schema: The schema of new dictionaries.
        distributes: Whether tables are distributed over machines, so that every operator fills a table in its place.
        plain: How SQL is spelled for an engine that has no functions of this package; None for the others.
        names_in: The name of the dialect in which plans name tables; empty if it is this one.
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
    largest_gathered: int | None
    stores_lists: bool
    moves_expressions: bool
    computes_whole: bool
    spills_states: bool
    has_workers: bool
    joins_rows: bool
    chains_arrays: bool
    forgets_own_rows: bool
    has_snapshots: bool
    catalogue_scripts: tuple[str, ...]
    dictionary_schema: str
    changes_script: str | None = None
    distributes: bool = False
    probes_first: bool = False
    nests_queries: bool = False
    plain: Spelling | None = None
    names_in: str = ""

    @property
    def chains_entries(self) -> bool:
        """Whether several EinSums over all entries of a matrix in memory are computed as arrays, each in a column."""
        return self.chains_arrays and self.keeps_residents


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
    largest_gathered=None,
    stores_lists=True,
    moves_expressions=False,
    computes_whole=True,
    spills_states=False,
    has_workers=False,
    joins_rows=True,
    chains_arrays=True,
    forgets_own_rows=True,
    has_snapshots=True,
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
    largest_gathered=1 << 28,  # of less than 2^30 that a value can have, as each worker has a copy
    stores_lists=True,
    moves_expressions=True,
    computes_whole=False,
    spills_states=True,
    has_workers=True,
    joins_rows=True,
    chains_arrays=True,
    forgets_own_rows=False,
    has_snapshots=False,
    catalogue_scripts=("sql/catalogue.sql", "sql/postgresql/row_level_security.sql"),
    changes_script="sql/postgresql/changes.sql",
    dictionary_schema="sparseeinsum_dictionaries",  # where roles may create tables, but no functions with our names
)
PORTABLE = replace(POSTGRESQL, largest_gathered=None)  # its functions would check the whole array for every row
CITUS = replace(
    POSTGRESQL,
    name=Citus.__name__.lower(),
    has_workers=False,
    joins_rows=False,
    chains_arrays=False,
    distributes=True,
    largest_gathered=None,
    stores_lists=False,
    changes_script=None,  # machines write without the coordinator
)


def as_written(dialect: Dialect) -> Dialect:
    """The dialect for statements that the engine runs as they are written, without optimisation.

    DuckDB's hash joins are built of the second operand then, and a table function of an extension, such as the hint,
    would keep it from keeping a plan. It materialises every CTE.
    """
    if dialect.probe_hint is None:
        return dialect
    return replace(dialect, probe_hint=None, probes_first=True, nests_queries=True)


def write_sql(statement: exp.Expr, dialect: Dialect) -> str:
    """The text of a statement, one clause a line, with identifiers quoted where necessary."""
    if dialect.plain is not None:
        return plain_text(statement, dialect.name, dialect.plain)
    return statement.sql(dialect.name, pretty=True, normalize_functions=False, max_text_width=100)
