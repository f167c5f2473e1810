"""The command line: the commands load, drop and grant."""

import argparse

import sparseeinsum as se
from sparseeinsum.cli.database_opening import open_database, open_or_create
from sparseeinsum.cli.usage import UsageError
from sparseeinsum.language.sql_texts import write_declaration
from sparseeinsum.language.tensors import StoredTensor


def load(arguments: argparse.Namespace) -> None:
    """Make a tensor of a file, a table or a view, and print its declaration."""
    with open_or_create(arguments.database) as database:
        stored = _copy(arguments, database) if arguments.copies else _refer_to(arguments, database)
        entries = database.statistics(arguments.name).entries
    print(f"{write_declaration(stored.tensor)}: {entries:,.0f} entries in {stored.relation}")


def _copy(arguments: argparse.Namespace, database: se.Database) -> StoredTensor:
    """Load a copy of the rows into a table of its own."""
    return database.tensor(
        arguments.name,
        arguments.source,
        axes=arguments.axes,
        shape=arguments.shape,
        fill=arguments.fill,
        dtype=arguments.dtype,
        duplicates=arguments.duplicates,
        keys=arguments.keys,
        index=arguments.index,
        value=arguments.value,
        distribute=arguments.distribute,
    )


def _refer_to(arguments: argparse.Namespace, database: se.Database) -> StoredTensor:
    """Make a tensor of an existing table or file, whose rows stay where they are."""
    if arguments.index is None:
        raise UsageError("--no-copy needs the index columns, as in --index src,dst")
    if arguments.duplicates != "error":
        raise UsageError("--duplicates sum creates new rows, but --no-copy reads existing ones; leave out one of them")
    if arguments.distribute is not None:
        raise UsageError("--distribute needs a copy of the rows, but --no-copy makes none; leave out one of them")
    return database.tensor_from_table(
        arguments.name,
        arguments.source,
        arguments.index,
        arguments.value,
        shape=arguments.shape,
        axes=arguments.axes,
        dtype=arguments.dtype,
        fill=0 if arguments.fill is None else arguments.fill,
        keys=arguments.keys,
    )


def drop(arguments: argparse.Namespace) -> None:
    """Drop tensors, and the tables that they were loaded into."""
    with open_database(arguments.database) as database:
        for name in arguments.tensors:
            stored = database.drop_tensor(name)
            print(f"{name} is dropped" + (f", with its table {stored.relation}" if stored.is_owned else ""))


def grant(arguments: argparse.Namespace) -> None:
    """Let a PostgreSQL role use the tensors of a database."""
    with open_database(arguments.database) as database:
        database.grant(arguments.role)
    print(f"{arguments.role} may use the tensors of this database; rights to their tables are granted in SQL")
