"""Engines: transactions of a cluster in which every machine works on one shard of a table at a time."""

from contextlib import AbstractContextManager, nullcontext

from sparseeinsum.engines.engine import Engine


def sequential_shards(engine: Engine) -> AbstractContextManager[None]:
    """A transaction in which every machine of a cluster works on one shard at a time, over one connection.

    Citus needs this to fill reference tables. It is impossible in a transaction that has worked on several shards.
    """
    return engine.transaction() if engine.dialect.distributes else nullcontext()
