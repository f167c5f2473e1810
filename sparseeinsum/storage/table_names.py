"""Storage: names of tables, views and files: as users and SQL write them, and as the catalogue keeps them, in parts."""

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

from sparseeinsum.engines.engine import Engine, Relation
from sparseeinsum.errors import CatalogueError


def parse_table_name(text: str, dialect: str) -> exp.Table:
    """A table by the name that a user gives, which may have a schema and a database before it.

    Raises:
        CatalogueError: It is no name.
    """
    try:
        table = exp.to_table(text, dialect=dialect)
    except SqlglotError:  # of its parser, and of what splits the text before
        table = None
    if not isinstance(table, exp.Table):
        raise CatalogueError(
            f"{text!r} names no table; write table, schema.table or database.schema.table, keywords in double quotes"
        )
    return normalize_identifiers(table, dialect) if folds_case(dialect) else table


def folds_case(dialect: str) -> bool:
    """Whether names are lower-cased where they are not quoted, and told apart by case where they are."""
    return Dialect.get_or_raise(dialect).normalization_strategy is NormalizationStrategy.LOWERCASE


def table_in(schema: str, name: str, dialect: str, catalog: str | None = None) -> exp.Table:
    """A table by the parts of its name, quoted where it would be read as something else, as VALUES is.

    A name that is longer than the database has them is the one that is written in its place.
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


def table_of_relation(relation: Relation, dialect: str) -> exp.Table:
    """A table or view that the database has, by its whole name."""
    return table_in(relation.schema, relation.name, dialect, relation.catalog)


def qualified_table(table: exp.Table, engine: Engine) -> exp.Table:
    """A table with its schema; that in which a bare name stands for a new table, where none is given."""
    if table.db:
        return table
    return exp.table_(table.this.copy(), db=exp.to_identifier(engine.location()[1]))


def file_table(path: str) -> exp.Table:
    """A file that a database reads as a table."""
    return exp.Table(this=exp.Literal.string(path))


def parts_of_relation(text: str, dialect: str) -> list[str]:
    """The parts of the name of a relation that SQL has so: catalog, schema and table; the path alone of a file.

    Raises:
        CatalogueError: It is no plain name, but something that SQL would compute.
    """
    try:
        table = exp.maybe_parse(text, into=exp.Table, dialect=dialect)
    except SqlglotError:
        table = None
    parts = table.parts if isinstance(table, exp.Table) else []
    is_file = len(parts) == 1 and isinstance(parts[0], exp.Literal)
    if not parts or not (is_file or all(isinstance(part, exp.Identifier) for part in parts)):
        raise CatalogueError(f"{text!r} is recorded as the relation of a tensor, but is the name of none")
    return [part.name for part in parts]


def relation_of_parts(parts: Sequence[str], dialect: str) -> exp.Table:
    """The relation of which `parts_of_relation` gives the parts."""
    if len(parts) == 1:
        return file_table(parts[0])
    *catalog, schema, name = parts
    return table_in(schema, name, dialect, *catalog)
