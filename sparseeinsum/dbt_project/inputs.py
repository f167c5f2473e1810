"""Dbt: the tables, views and files that a plan reads, as models or sources of the project, or as new sources."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlglot import exp

from sparseeinsum.dbt_project.project import DbtProject, Location
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import DbtError
from sparseeinsum.language.tensors import Dictionary, StoredTensor
from sparseeinsum.statistics.columns import table_by_name
from sparseeinsum.storage.table_names import folds_case


@dataclass(frozen=True, slots=True)
class DbtSource:
    """A table or a file that the generated YAML declares as a source.

    Attributes:
        group: The name of the source.
        table: The name of the table in the source.
        location: The location of the table; None for a file.
        file: The path of the file; None for a table.
        is_in_other_database: Whether the table is in another database than the models.
        declared_schema: The schema of the table as YAML has it; it can be an expression of Jinja.
    """

    group: str
    table: str
    location: Location | None
    file: str | None
    is_in_other_database: bool
    declared_schema: str = ""

    @property
    def reference(self) -> str:
        """The Jinja expression by which models refer to it."""
        return f"source('{self.group}', '{self.table}')"


@dataclass(frozen=True, slots=True)
class DbtTable:
    """A table that models read.

    Attributes:
        reference: The Jinja expression by which models refer to it.
        source: The source that must be declared for it; None if the project knows the table already.
    """

    reference: str
    source: DbtSource | None


@dataclass(frozen=True, slots=True)
class DbtInput(DbtTable):
    """The table of a tensor, `stored`."""

    stored: StoredTensor


@dataclass(frozen=True, slots=True)
class DbtDictionary(DbtTable):
    """The table of a dictionary."""

    dictionary: Dictionary


def inputs_of(
    stored: Mapping[str, StoredTensor], program: str, project: DbtProject, engine: Engine
) -> dict[str, DbtInput]:
    """The inputs of a plan that are tables, views or files, by name.

    Args:
        stored: The stored tensors that the plan reads, by name.
        program: The name of the program, the prefix of the names of new sources.
        project: The dbt project.
        engine: The engine with the tensors.

    Raises:
        DbtError: An input is a temporary table, or may be the table of a model whose location is unknown.
    """
    return dict(_inputs(stored, program, project, engine))


def _inputs(
    stored: Mapping[str, StoredTensor], program: str, project: DbtProject, engine: Engine
) -> Iterator[tuple[str, DbtInput]]:
    """The pairs of a name and an input."""
    database, schema = engine.location()
    for name, tensor in with_entries(stored).items():
        if tensor.relation.startswith("'"):
            source = _file_source(table_by_name(tensor, engine.dialect_name).name, program)
            yield name, DbtInput(source.reference, source, tensor)
            continue
        table = permanent_table(name, tensor, engine)
        location = (table.catalog or database, table.db or schema, table.name)
        reference = project.reference(location, folds_case=not folds_case(engine.dialect_name))
        if reference is not None:
            yield name, DbtInput(reference, None, tensor)
            continue
        source = source_of_table(location, program, location[0] != database, location[1])
        yield name, DbtInput(source.reference, source, tensor)


def with_entries(stored: Mapping[str, StoredTensor]) -> dict[str, StoredTensor]:
    """The tensors that are tables, views or files with one row an entry or an array, by name."""
    return {name: tensor.as_view for name, tensor in stored.items() if not tensor.is_generated}


def permanent_table(name: str, stored: StoredTensor, engine: Engine) -> exp.Table:
    """The table or view of a tensor.

    Raises:
        DbtError: It is a temporary table.
    """
    table = table_by_name(stored, engine.dialect_name)
    if engine.dialect.temporary_schema in (table.catalog, table.db):
        raise DbtError(f"tensor {name} is in the temporary table {stored.relation}, which models cannot read")
    return table


def source_of_table(location: Location, program: str, is_in_other_database: bool, declared_schema: str) -> DbtSource:
    """A new source for a table.

    Args:
        location: The location of the table where the plan was made.
        program: The name of the program, the prefix of the name of the source.
        is_in_other_database: Whether the table is in another database than the models.
        declared_schema: The schema of the table as YAML has it.
    """
    database, schema, name = location
    group = f"{program}_{database}_{schema}" if is_in_other_database else f"{program}_{schema}"
    return DbtSource(_identifier(group), _identifier(name), location, None, is_in_other_database, declared_schema)


def _file_source(path: str, program: str) -> DbtSource:
    return DbtSource(f"{program}_files", _identifier(Path(path).name), None, path, is_in_other_database=False)


def _identifier(text: str) -> str:
    return re.sub(r"\W", "_", text)
