"""Loops: the table with a row for every step that was done, by which a loop can go on later."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import CatalogueError, PlanError
from sparseeinsum.language.syntax import STEP
from sparseeinsum.operators.dtypes import Number, is_complex
from sparseeinsum.statistics.columns import number_type
from sparseeinsum.statistics.number_literals import number
from sparseeinsum.storage.ownership import default_table

_KEY = "sparseeinsum_loop"  # in the comment of the table


@dataclass(frozen=True, slots=True)
class StepRecords:
    """The table of the steps of a loop: the number of the step, then the numbers that it returned.

    Attributes:
        engine: The database.
        table: The table.
        dtypes: The dtypes of the numbers, by their names.
    """

    engine: Engine
    table: exp.Table
    dtypes: Mapping[str, str]

    @property
    def _columns(self) -> list[exp.Identifier]:
        return [exp.to_identifier(name, quoted=True) for name in (STEP, *self.dtypes)]

    def create(self, state: Sequence[str]) -> None:
        """Create the table without rows, in place of that of an earlier loop over the same state."""
        types = [number_type("int64"), *map(number_type, self.dtypes.values())]
        columns = [
            exp.alias_(exp.cast(exp.null(), kind), name) for name, kind in zip(self._columns, types, strict=True)
        ]
        self.engine.replace_table(self.table, exp.select(*columns).limit(0))
        comment = exp.Literal.string(json.dumps({_KEY: list(state)}))
        self.engine.execute(exp.Comment(this=self.table.copy(), kind="TABLE", expression=comment))

    def add(self, rows: Sequence[tuple[int, Mapping[str, Number]]]) -> None:
        """Add the rows of steps: their numbers, and what they returned."""
        dialect = self.engine.dialect_name
        values = ", ".join(f"({', '.join(self._literals(step, numbers, dialect))})" for step, numbers in rows)
        self.engine.execute(f"INSERT INTO {self.table.sql(dialect)} VALUES {values}")

    def _literals(self, step: int, numbers: Mapping[str, Number], dialect: str) -> list[str]:
        returned = (number(numbers[name], dtype).sql(dialect) for name, dtype in self.dtypes.items())
        return [str(step), *returned]

    def count(self) -> int:
        """The number of steps in the table."""
        ((rows,),) = self.engine.rows(f"SELECT COUNT(*) FROM {self.table.sql(self.engine.dialect_name)}")
        return int(str(rows))

    def read(self) -> list[dict[str, Number]]:
        """What the steps so far returned, in order.

        Raises:
            PlanError: There is no such table, or it has other columns.
        """
        present = self.engine.columns_of(self.table)
        name = self.table.sql(self.engine.dialect_name)
        if present is None:
            raise PlanError(f"there is no table {name} with the steps so far, so that no loop can go on; begin one")
        names = [STEP, *self.dtypes]
        if [column.name for column in present] != names:
            raise PlanError(
                f"the table {name} has the columns {', '.join(column.name for column in present)}, but this loop "
                f"records {', '.join(names)}; go on with the history and the condition that it began with"
            )
        rows = self.engine.rows(exp.select(*self._columns).from_(self.table.copy()).order_by(*self._columns[:1]))
        return [dict(zip(self.dtypes, row[1:], strict=True)) for row in rows]  # type: ignore[arg-type]  # numbers


def records_of(engine: Engine, name: str, dtypes: Mapping[str, str]) -> StepRecords:
    """The table of the steps of a loop; it is not created yet.

    Args:
        engine: The database.
        name: The tensor that keeps the first state.
        dtypes: The dtypes of the numbers that every step returns.

    Raises:
        PlanError: A number is complex.
        CatalogueError: A table of that name was not made for the steps of a loop.
    """
    for quantity, dtype in dtypes.items():
        if is_complex(dtype):
            raise PlanError(f"{quantity} is complex; a history and a condition take its parts or its abs")
    table = default_table(engine, f"{name}_history")
    for relation in engine.relations_named(table.name):
        if relation.schema == table.db and not _is_of_loop(relation.comment):
            raise CatalogueError(
                f"there is a table {relation.name} that holds no steps of a loop over {name}; rename it, or keep the "
                'state under another name, as in into={"' + name + '": "..."}'
            )
    return StepRecords(engine, table, dtypes)


def _is_of_loop(comment: str | None) -> bool:
    try:
        described = json.loads(comment or "null")
    except ValueError:
        return False
    return isinstance(described, dict) and _KEY in described
