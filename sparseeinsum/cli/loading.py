"""The command line: tensors that come and go."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sparseeinsum as se
from sparseeinsum.cli.commands import open_database
from sparseeinsum.language.sql_texts import write_declaration
from sparseeinsum.language.tensors import StoredTensor


def load(asked: argparse.Namespace) -> None:
    """Make a tensor of a file, a table or a view."""
    with _opened_or_made(asked.database) as database:
        stored = _loaded(asked, database) if asked.copies else _referred(asked, database)
        entries = database.statistics(asked.name).entries
    print(f"{write_declaration(stored.tensor)}: {entries:,.0f} entries in {stored.relation}")


def _loaded(asked: argparse.Namespace, database: se.Database) -> StoredTensor:
    return database.tensor(
        asked.name,
        asked.source,
        axes=asked.axes,
        shape=asked.shape,
        fill=asked.fill,
        dtype=asked.dtype,
        duplicates=asked.duplicates,
        keys=asked.keys,
        index=asked.index,
        value=asked.value,
        distribute=asked.distribute,
    )


def _referred(asked: argparse.Namespace, database: se.Database) -> StoredTensor:
    if asked.index is None:
        raise ValueError("--no-copy needs --index, the columns of indices, as in --index src,dst")
    if asked.duplicates != "error":
        raise ValueError("--duplicates sum makes new rows, and --no-copy takes those there are; leave out one")
    if asked.distribute is not None:
        raise ValueError("--distribute is for rows that are copied, and --no-copy leaves them where they are")
    return database.tensor_from_table(
        asked.name,
        asked.source,
        asked.index,
        asked.value,
        shape=asked.shape,
        axes=asked.axes,
        dtype=asked.dtype,
        fill=0 if asked.fill is None else asked.fill,
        keys=asked.keys,
    )


def drop(asked: argparse.Namespace) -> None:
    """Forget tensors."""
    with open_database(asked.database) as database:
        for name in asked.tensors:
            stored = database.drop_tensor(name)
            print(f"{name} is gone" + (f", with the table {stored.relation}" if stored.is_owned else ""))


def grant(asked: argparse.Namespace) -> None:
    """Let a role use the tensors of a database."""
    with open_database(asked.database) as database:
        database.grant(asked.role)
    print(f"{asked.role} may use the tensors of this database; rights to their tables are granted in SQL")


@contextmanager
def _opened_or_made(target: str) -> Iterator[se.Database]:
    """A database; a file that is made for it goes again where nothing comes into it."""
    is_new = "://" not in target and not Path(target).exists()
    try:
        with se.connect(target) as database:
            yield database
    except BaseException:
        if is_new:
            Path(target).unlink(missing_ok=True)
        raise
