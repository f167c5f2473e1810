"""API: the database in memory that calls without a database of their own share in a process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from sparseeinsum.api.database import Database
from sparseeinsum.api.opening import connect
from sparseeinsum.engines.locking import lock_of


@contextmanager
def process_database() -> Iterator[Database]:
    """The database, for one thread at a time; its tensors are dropped in the end.

    After an error it is closed, and the next call opens another one.
    """
    with _opening_in(os.getpid()):  # several threads would open one each
        database = _opened_in(os.getpid())
    with lock_of(database.connection):
        try:
            yield database
            for name in database.tensors():
                database.drop_tensor(name)
        except BaseException:
            _opened_in.cache_clear()
            database.close()
            raise


@cache
def _opened_in(process: int) -> Database:
    """The database of a process; a fork needs another one, because the threads of a database do not survive it."""
    del process
    return connect()


@cache
def _opening_in(process: int) -> Lock:
    """The lock of a process under which its database is opened; a fork would inherit one that a thread holds."""
    del process
    return Lock()
