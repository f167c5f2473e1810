"""Runs plans and stops those that take too long."""

import math
import time

import duckdb

import sparseeinsum as se


def seconds_within(database: se.Database, plan: se.Plan, limit: float) -> float:
    """How long a run takes; infinite where one of its statements takes longer than so many seconds.

    The limit is kept between chunks of rows: a kernel is not stopped while it runs.
    """
    database.connection.execute(f"SET max_execution_time = {0 if math.isinf(limit) else math.ceil(limit * 1000)}")
    try:
        start = time.perf_counter()
        database.run(plan, progress=False, replan=False)
        return time.perf_counter() - start
    except se.EngineError as error:
        if isinstance(error.__cause__, duckdb.InterruptException):
            return math.inf
        raise
    finally:
        database.connection.execute("RESET max_execution_time")
