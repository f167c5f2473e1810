"""Dbt: the tables, views and files that a plan reads, as references to what dbt knows, or to sources that are new."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sparseeinsum.dbt_project.project import DbtProject, Place
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import DbtError
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.columns import table_by_name
from sparseeinsum.storage.table_names import folds_case


@dataclass(frozen=True, slots=True)
class Source:
    """A table or file of which dbt is told.

    Attributes:
        group: The name of its source.
        table: Its name there.
        place: Where it lies; None for a file.
        file: Its path; None for a table.
        is_elsewhere: Whether it lies in another database than the models do.
    """

    group: str
    table: str
    place: Place | None
    file: str | None
    is_elsewhere: bool

    @property
    def reference(self) -> str:
        """What models call it."""
        return f"source('{self.group}', '{self.table}')"


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor that models read.

    Attributes:
        stored: The tensor.
        reference: What models call its table.
        source: Where it is one of which dbt is told here; None where dbt knows the table.
    """

    stored: StoredTensor
    reference: str
    source: Source | None


def inputs_of(
    stored: Mapping[str, StoredTensor], program: str, project: DbtProject, engine: Engine
) -> dict[str, Input]:
    """The inputs of a plan that are tables, views or files, by name; `program` names their sources.

    Raises:
        DbtError: One is a temporary table, or may be what a model makes, of which dbt has not told where it lies.
    """
    return dict(_inputs(stored, program, project, engine))


def _inputs(
    stored: Mapping[str, StoredTensor], program: str, project: DbtProject, engine: Engine
) -> Iterator[tuple[str, Input]]:
    database, schema = engine.location()
    for name, each in stored.items():
        if each.is_generated:
            continue
        table = table_by_name(each, engine.dialect_name)
        if each.relation.startswith("'"):
            source = _file(table.name, program)
            yield name, Input(each, source.reference, source)
            continue
        if engine.dialect.temporary_schema in (table.catalog, table.db):
            raise DbtError(f"tensor {name} lies in the temporary table {each.relation}, which no model could read")
        place = (table.catalog or database, table.db or schema, table.name)
        reference = project.reference(place, folds_case=not folds_case(engine.dialect_name))
        if reference is not None:
            yield name, Input(each, reference, None)
            continue
        source = _table(place, program, is_elsewhere=place[0] != database)
        yield name, Input(each, source.reference, source)


def _table(place: Place, program: str, is_elsewhere: bool) -> Source:
    database, schema, name = place
    group = f"{program}_{database}_{schema}" if is_elsewhere else f"{program}_{schema}"
    return Source(_word(group), _word(name), place, None, is_elsewhere)


def _file(path: str, program: str) -> Source:
    return Source(f"{program}_files", _word(Path(path).name), None, path, is_elsewhere=False)


def _word(text: str) -> str:
    return re.sub(r"\W", "_", text)
