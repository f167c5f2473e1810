"""Storage: names of tables, views and files, as users and SQL write them, and as the catalogue stores their parts."""

from collections.abc import Sequence
from functools import lru_cache

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

from sparseeinsum.engines.engine import DatabaseRelation, Engine
from sparseeinsum.errors import CatalogueError


def parse_table_name(text: str, dialect: str) -> exp.Table:
    """Parse the name of a table that a user gives, with or without its schema and database.

    Raises:
        CatalogueError: `text` is no name of a table.
    """
    try:
        table = exp.to_table(text, dialect=dialect)
    except SqlglotError:  # of the parser or the tokenizer
        table = None
    if not isinstance(table, exp.Table):
        raise CatalogueError(
            f"{text!r} names no table; write table, schema.table or database.schema.table, keywords in double quotes"
        )
    return normalize_identifiers(table, dialect) if folds_case(dialect) else table


def folds_case(dialect: str) -> bool:
    """Return whether the dialect converts unquoted names to lower case; quoted names are then case-sensitive."""
    return Dialect.get_or_raise(dialect).normalization_strategy is NormalizationStrategy.LOWERCASE


def table_in(schema: str, name: str, dialect: str, catalog: str | None = None) -> exp.Table:
    """Return a table from the parts of its name, quoted if SQL would read it as something else, such as VALUES.

    A name that is too long for the database is shortened as the dialect does.
    """

    def spelled(quoted: bool | None) -> exp.Table:
        this, db, before = (exp.to_identifier(part, quoted=quoted) for part in (name, schema, catalog))
        return exp.table_(this, db=db, catalog=before)

    plain = spelled(None)
    try:
        read = exp.maybe_parse(plain.sql(dialect), into=exp.Table, dialect=dialect)
    except ParseError:
        read = None
    if read is None:
        return spelled(True)
    return plain if read.name == name else table_in(schema, read.name, dialect, catalog)


def table_of_relation(relation: DatabaseRelation, dialect: str) -> exp.Table:
    """Return a table or view of the database by its qualified name."""
    return table_in(relation.schema, relation.name, dialect, relation.catalog)


def qualified_table(table: exp.Table, engine: Engine) -> exp.Table:
    """Return a table with its schema; by default the schema in which new tables are created."""
    if table.db:
        return table
    return exp.table_(table.this.copy(), db=exp.to_identifier(engine.location()[1]))


def file_table(path: str) -> exp.Table:
    """Return a file as a table to select from."""
    return exp.Table(this=exp.Literal.string(path))


@lru_cache(maxsize=512)  # called several times for every tensor that is loaded
def parts_of_relation(text: str, dialect: str) -> tuple[str, ...]:
    """Split the SQL name of a relation into catalog, schema and table; a file has one part, its path.

    Raises:
        CatalogueError: `text` is no plain name, but an expression.
    """
    try:
        table = exp.maybe_parse(text, into=exp.Table, dialect=dialect)
    except SqlglotError:
        table = None
    parts = table.parts if isinstance(table, exp.Table) else []
    is_file = len(parts) == 1 and isinstance(parts[0], exp.Literal)
    if not parts or not (is_file or all(isinstance(part, exp.Identifier) for part in parts)):
        raise CatalogueError(f"{text!r} is recorded as the relation of a tensor, but is the name of none")
    return tuple(part.name for part in parts)


def relation_of_parts(parts: Sequence[str], dialect: str) -> exp.Table:
    """Return the relation from the parts that `parts_of_relation` returns."""
    if len(parts) == 1:
        return file_table(parts[0])
    *catalog, schema, name = parts
    return table_in(schema, name, dialect, *catalog)
