"""Engines: ANALYZE for tables that a program has written, as PostgreSQL's planner needs it.

The planner takes a table that was never analysed for one of 10 pages.
"""

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from sparseeinsum.engines.engine import Column, Engine
from sparseeinsum.language.tensors import VALUE_COLUMN

SetLocal = Callable[[Mapping[str, str]], None]  # changes settings for the rest of a transaction

# ANALYZE samples 300 rows times this setting, 100 by default. To estimate the size of values, a few rows are enough.
_TARGET = "default_statistics_target"
_KEY_TARGET = 30
_SIZE_TARGET = 1


def analyze_stage(engine: Engine, set_local: SetLocal, table: exp.Table, query: exp.Select) -> None:
    """Analyse a stage, the result of `query`, as closely as the plans of a few statements need."""
    values = [name for name in query.named_selects if name == VALUE_COLUMN]
    keys = [name for name in query.named_selects if name != VALUE_COLUMN]
    _analyze_sampled(engine, set_local, table, {_SIZE_TARGET: values, _KEY_TARGET: keys})


def analyze_permanent(engine: Engine, set_local: SetLocal, table: exp.Table, columns: Sequence[Column]) -> None:
    """Analyse a permanent table, but its arrays only for their size: ANALYZE would count all their elements."""
    arrays = [column.name for column in columns if column.sql_type.endswith("[]")]
    _analyze(engine, table, [column.name for column in columns if column.name not in arrays])
    _analyze_sampled(engine, set_local, table, {_SIZE_TARGET: arrays})


def _analyze_sampled(
    engine: Engine, set_local: SetLocal, table: exp.Table, columns_by_target: Mapping[int, Sequence[str]]
) -> None:
    """Analyse columns with other statistics targets than the server's default."""
    by_target = {target: columns for target, columns in columns_by_target.items() if columns}
    if by_target:
        ((before,),) = engine.rows(f"SELECT current_setting('{_TARGET}')")
        for target, columns in by_target.items():
            set_local({_TARGET: str(target)})
            _analyze(engine, table, columns)
        set_local({_TARGET: str(before)})


def _analyze(engine: Engine, table: exp.Table, columns: Sequence[str]) -> None:
    if columns:
        listed = ", ".join(exp.to_identifier(name, quoted=True).sql(engine.dialect_name) for name in columns)
        engine.execute(f"ANALYZE {table.sql(engine.dialect_name)} ({listed})")
