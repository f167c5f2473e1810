"""Render: how broadcasts come to all machines: sent with the statement that reads them, or kept in reference tables.

Both move the same once. What the coordinator sends it would send with every statement; but while reference tables are
filled, every machine works on one shard at a time.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlglot import exp

from sparseeinsum.render.statements import Statement


def is_everywhere(stage: Statement) -> bool:
    """Whether a stage fills a table that every machine has."""
    return stage.spread is not None and stage.spread.is_replicated


def with_broadcasts_sent(
    stages: Sequence[Statement], broadcasts: Collection[str], others: Sequence[exp.Select], spread: Sequence[exp.Table]
) -> tuple[Statement, ...]:
    """Stages, of which those that are broadcast leave their rows with the coordinator if it sends them once.

    That is with the one statement that reads them, if it works on rows that are spread over the machines. What it reads
    besides may be reference tables; with nothing but those it would not see what the coordinator has.

    Args:
        stages: All of them; what is broadcast fills reference tables.
        broadcasts: Names of those whose rows come from other machines.
        others: What else reads their tables.
        spread: Tables whose rows are spread over machines, other than those of stages.
    """
    filled = [each.stage for each in stages if each.stage is not None and not is_everywhere(each)]
    known = {_name(table) for table in (*spread, *filled)}
    reads: Counter[str] = Counter()
    reads_of_spread: Counter[str] = Counter()
    for select in (*(each.query for each in stages), *others):
        tables = Counter(map(_name, select.find_all(exp.Table)))
        reads += tables
        if not known.isdisjoint(tables):
            reads_of_spread += tables
    names = {each.name: _name(each.stage) for each in stages if each.stage is not None and each.name in broadcasts}
    sent = {each for each, table in names.items() if reads[table] == reads_of_spread[table] == 1}
    return tuple(replace(each, spread=None) if each.name in sent else each for each in stages)


def _name(table: exp.Table) -> str:
    return f"{table.db}.{table.name}"
