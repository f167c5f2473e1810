"""Engines: a table of DuckDB that several queries fill, and that takes the place of another one."""

from collections.abc import Sequence

from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.temporary_names import temporary_name


def replace_in_passes(engine: Engine, table: exp.Table, queries: Sequence[exp.Select]) -> int:
    """Replace a table by the rows of queries, which may read it as it was; return the number of rows."""
    new = table.copy()
    new.set("this", exp.to_identifier(temporary_name(table.name)))
    first, *others = queries
    count = engine.replace_table(new, first)
    count += sum(engine.insert(new, query) for query in others)
    engine.execute(exp.Drop(tables=[table.copy()], kind="TABLE", exists=True))
    name = exp.AlterRename(this=exp.table_(table.this.copy()))
    engine.execute(exp.Alter(this=new, kind="TABLE", actions=[name]))
    return count
