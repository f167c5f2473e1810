"""Render: how broadcasts reach all machines: sent with the statement that reads them, or stored in reference tables.

Both transfer the same bytes once. The coordinator would send its rows with every statement that reads them; but while a
reference table is filled, every machine works on one shard at a time.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlglot import exp

from sparseeinsum.render.sql_statement import SqlStatement


def is_everywhere(stage: SqlStatement) -> bool:
    """Whether a stage fills a reference table, which every machine has."""
    return stage.distribution is not None and stage.distribution.is_replicated


def with_broadcasts_sent(
    stages: Sequence[SqlStatement],
    broadcasts: Collection[str],
    others: Sequence[exp.Select],
    distributed: Sequence[exp.Table],
) -> tuple[SqlStatement, ...]:
    """The stages, where a broadcast that is read once leaves its rows with the coordinator, which sends them.

    That is possible if the one statement that reads them also reads rows that are distributed over the machines. It may
    read reference tables besides; with reference tables alone it would not see the rows of the coordinator.

    Args:
        stages: All stages; those of broadcasts fill reference tables.
        broadcasts: The names of the stages whose rows come from other machines.
        others: Other SELECTs that read the tables of stages.
        distributed: Tables other than those of stages whose rows are distributed over machines.
    """
    stage_tables = [stage.stage for stage in stages if stage.stage is not None and not is_everywhere(stage)]
    distributed_names = {_name(table) for table in (*distributed, *stage_tables)}
    reads: Counter[str] = Counter()
    distributed_reads: Counter[str] = Counter()
    for select in (*(stage.query for stage in stages), *others):
        tables = Counter(map(_name, select.find_all(exp.Table)))
        reads += tables
        if not distributed_names.isdisjoint(tables):
            distributed_reads += tables
    tables_of = {
        stage.name: _name(stage.stage) for stage in stages if stage.stage is not None and stage.name in broadcasts
    }
    sent = {name for name, table in tables_of.items() if reads[table] == distributed_reads[table] == 1}
    return tuple(replace(stage, distribution=None) if stage.name in sent else stage for stage in stages)


def _name(table: exp.Table) -> str:
    return f"{table.db}.{table.name}"
