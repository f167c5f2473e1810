"""Dbt: writes the YAML that describes and tests models and sources."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.dbt_project.dbt_models import Model
from sparseeinsum.dbt_project.inputs import DbtDictionary, DbtInput, DbtSource
from sparseeinsum.dbt_project.jinja import MARK
from sparseeinsum.dbt_project.row_tests import RowTests, Test
from sparseeinsum.language.scalar import write_number
from sparseeinsum.language.sql_texts import write_declaration
from sparseeinsum.language.tensors import VALUE_COLUMN, StoredTensor, count_keys, key_dictionaries
from sparseeinsum.statistics.dictionary_queries import INDEX_COLUMN, KEY_COLUMN

_WIDTH = 100  # of a line


def models_yaml(models: Sequence[Model], program: str, text: str, row_tests: RowTests) -> str:
    """The YAML of models: descriptions, and tests of their rows.

    Args:
        models: The models.
        program: The name of their program.
        text: The text of the program.
        row_tests: Writes the tests.
    """
    described = [_model(model, program, text, row_tests) for model in models]
    return _yaml({"version": 2, "models": described}, program)


def sources_yaml(
    inputs: Iterable[DbtInput], program: str, row_tests: RowTests, dictionaries: Iterable[DbtDictionary] = ()
) -> str | None:
    """The YAML of new sources: descriptions, and tests of their rows; None if there are no new sources.

    Args:
        inputs: The tensors that models read.
        program: The name of their program.
        row_tests: Writes the tests.
        dictionaries: The dictionaries that models read.
    """
    tables: dict[DbtSource, list[StoredTensor]] = {}
    for tensor in inputs:
        if tensor.source is not None:
            tables.setdefault(tensor.source, []).append(tensor.stored)
    groups: dict[str, dict[str, Any]] = {}
    for source, tensors in tables.items():
        group = groups.setdefault(source.group, _group(source, program))
        group["tables"].append(_table(source, tensors, program, row_tests))
    for entry in dictionaries:
        if entry.source is not None:
            group = groups.setdefault(entry.source.group, _group(entry.source, program))
            group["tables"].append(_dictionary_table(entry, entry.source, program, row_tests))
    return _yaml({"version": 2, "sources": list(groups.values())}, program) if groups else None


def _yaml(content: Mapping[str, Any], program: str) -> str:
    text = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return f"# {MARK}: the program {program}. The next compilation replaces this file.\n{text}"


class _Dumper(yaml.SafeDumper):
    """A YAML writer that keeps the lines of multi-line texts."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def _model(model: Model, program: str, text: str, row_tests: RowTests) -> dict[str, Any]:
    """The YAML of one model."""
    schema = model.schema
    natural = key_dictionaries(schema.tensor, schema.decomposition) if model.is_result else [None] * len(schema.keys)
    keys = [
        row_tests.key_column(name, None if dictionary else count, len(schema.keys) == 1)
        for (name, count), dictionary in zip(schema.key_counts.items(), natural, strict=True)
    ]
    value_tests = ["not_null"] if schema.keys else []  # the aggregate of no rows is NULL, which stands for the fill
    return {
        "name": model.name,
        "description": _description(model, text),
        "config": {"tags": [program], "meta": {"tensor": _tensor_properties(schema)}},
        **_tests(row_tests.of_table(schema.keys)),
        "columns": [*keys, row_tests.column(VALUE_COLUMN, *value_tests)],
    }


def _description(model: Model, text: str) -> str:
    """The description of a model: its program, its declaration, and its EinSums as planned."""
    tensor = model.schema.tensor
    kind = "Result of" if model.is_result else "Intermediate of"
    written = "\n".join(f"    {line}" for line in text.strip().splitlines())
    computed = "\n".join(f"    {line}" for line in model.computes)
    fill = f"An index without a row has the value {write_number(tensor.fill)}."
    planned = f"\n\nAs planned (upper case: key columns; lower case: inside arrays):\n\n{computed}" if computed else ""
    return f"{kind} the program\n\n{written}\n\n`{write_declaration(tensor)}`. {fill}{planned}\n"


def _tensor_properties(schema: Schema) -> dict[str, Any]:
    """The properties of a tensor, for tools that read dbt's manifest."""
    tensor = schema.tensor
    return {
        "name": tensor.name,
        "axes": [axis.name for axis in tensor.axes],
        "shape": list(tensor.shape),
        "dtype": tensor.dtype,
        "fill": write_number(tensor.fill),
        "tiles": list(schema.decomposition.tiles),
    }


def _group(source: DbtSource, program: str) -> dict[str, Any]:
    group: dict[str, Any] = {"name": source.group, "description": f"What the program {program} reads."}
    if source.location is not None:
        group |= {"database": source.location[0]} if source.is_in_other_database else {}
        group["schema"] = source.declared_schema
    return group | {"tables": []}


def _named(source: DbtSource, program: str) -> dict[str, Any]:
    """The YAML of the name of one table of a source."""
    identifier = {} if source.location is None else {"identifier": source.location[-1]}
    return {"name": source.table, **identifier, "config": {"tags": [program]}}


def _dictionary_table(entry: DbtDictionary, source: DbtSource, program: str, row_tests: RowTests) -> dict[str, Any]:
    """The YAML of the table of a dictionary."""
    columns = [row_tests.column(name, "not_null", "unique") for name in (INDEX_COLUMN, KEY_COLUMN)]
    description = f"The dictionary {entry.dictionary.name}: keys, and the indices that stand for them."
    return {**_named(source, program), "description": description, "columns": columns}


def _table(source: DbtSource, tensors: Sequence[StoredTensor], program: str, row_tests: RowTests) -> dict[str, Any]:
    """The YAML of one table of a source, from the tensors that are read from it."""
    table = _named(source, program)
    if source.file is not None:
        table["config"]["meta"] = {"external_location": "'{}'".format(source.file.replace("'", "''"))}
    table["description"] = "Read as " + ", ".join(f"`{write_declaration(stored.tensor)}`" for stored in tensors) + "."
    tests: list[Test] = []
    columns: dict[str, dict[str, Any]] = {}
    for stored in tensors:
        tests += row_tests.of_table(stored.keys)
        is_only_key = len(stored.keys) == 1
        for column, position in zip(stored.keys, stored.decomposition.promoted, strict=True):
            keys = count_keys(stored.decomposition.tiles[position], stored.tensor.shape[position])
            bound = None if column in stored.column_dictionaries else keys
            columns.setdefault(column, row_tests.key_column(column, bound, is_only_key))
        if stored.value is not None:
            columns.setdefault(stored.value, row_tests.column(stored.value, "not_null"))
    distinct = [test for number, test in enumerate(tests) if test not in tests[:number]]
    return table | _tests(distinct) | {"columns": list(columns.values())}


def _tests(tests: Sequence[Test]) -> dict[str, Any]:
    """The YAML of the tests of a table."""
    return {"data_tests": list(tests)} if tests else {}
