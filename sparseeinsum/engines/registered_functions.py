"""Engines: the functions and aggregates of users, compiled for an engine before its statements call them."""

from collections.abc import Mapping

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import PlanError
from sparseeinsum.kernels.user_function_table import require_aggregate, require_function
from sparseeinsum.operators.records import ScalarFunction
from sparseeinsum.operators.user_aggregates import UserAggregate


def compile_functions(records: Mapping[str, ScalarFunction | UserAggregate], engine: Engine) -> None:
    """Compile functions and aggregates of users, by name.

    Raises:
        PlanError: The engine calls no Python functions.
    """
    for name, record in records.items():
        if not engine.dialect.calls_python:
            raise PlanError(f"{name} is a Python function, and {engine.title} has none of those yet; run it on DuckDB")
        if isinstance(record, UserAggregate):
            require_aggregate(record)
        elif record.python is not None:
            require_function(name, record.python)
