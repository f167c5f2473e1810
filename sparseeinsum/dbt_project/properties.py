"""Dbt: writes the YAML that describes and tests models and sources."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from sparseeinsum.algebra.operators import Schema
from sparseeinsum.dbt_project.inputs import DbtInput, DbtSource
from sparseeinsum.dbt_project.jinja import MARK
from sparseeinsum.dbt_project.models import Model
from sparseeinsum.language.scalar import write_number
from sparseeinsum.language.sql_texts import write_declaration
from sparseeinsum.language.tensors import VALUE_COLUMN, StoredTensor, count_keys, key_dictionaries

_WIDTH = 100  # of a line


def models_yaml(models: Sequence[Model], program: str, text: str) -> str:
    """The YAML of models: descriptions, and tests of their rows.

    Args:
        models: The models.
        program: The name of their program.
        text: The text of the program.
    """
    return _yaml({"version": 2, "models": [_model(model, program, text) for model in models]}, program)


def sources_yaml(inputs: Iterable[DbtInput], program: str) -> str | None:
    """The YAML of new sources: descriptions, and tests of their rows; None if there are no new sources."""
    tables: dict[DbtSource, list[StoredTensor]] = {}
    for tensor in inputs:
        if tensor.source is not None:
            tables.setdefault(tensor.source, []).append(tensor.stored)
    groups: dict[str, dict[str, Any]] = {}
    for source, tensors in tables.items():
        group = groups.setdefault(source.group, _group(source, program))
        group["tables"].append(_table(source, tensors, program))
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


def _model(model: Model, program: str, text: str) -> dict[str, Any]:
    """The YAML of one model."""
    schema = model.schema
    natural = key_dictionaries(schema.tensor, schema.decomposition) if model.is_result else [None] * len(schema.keys)
    keys = [
        _key(name, None if dictionary else count)
        for (name, count), dictionary in zip(schema.key_counts.items(), natural, strict=True)
    ]
    return {
        "name": model.name,
        "description": _description(model, text),
        "config": {"tags": [program], "meta": {"tensor": _tensor_properties(schema)}},
        "data_tests": [_unique(schema.keys)],
        "columns": [*keys, _column(VALUE_COLUMN, "not_null")],
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
        database, schema, _ = source.location
        group |= {"database": database} if source.is_in_other_database else {}
        group["schema"] = schema
    return group | {"tables": []}


def _table(source: DbtSource, tensors: Sequence[StoredTensor], program: str) -> dict[str, Any]:
    """The YAML of one table of a source, from the tensors that are read from it."""
    table: dict[str, Any] = {"name": source.table}
    if source.location is not None:
        table["identifier"] = source.location[-1]
    table["config"] = {"tags": [program]}
    if source.file is not None:
        table["config"]["meta"] = {"external_location": "'{}'".format(source.file.replace("'", "''"))}
    table["description"] = "Read as " + ", ".join(f"`{write_declaration(stored.tensor)}`" for stored in tensors) + "."
    tests: list[dict[str, Any]] = []
    columns: dict[str, dict[str, Any]] = {}
    for stored in tensors:
        tests.append(_unique(stored.keys))
        for column, position in zip(stored.keys, stored.decomposition.promoted, strict=True):
            keys = count_keys(stored.decomposition.tiles[position], stored.tensor.shape[position])
            columns.setdefault(column, _key(column, None if column in stored.column_dictionaries else keys))
        if stored.value is not None:
            columns.setdefault(stored.value, _column(stored.value, "not_null"))
    distinct = [test for number, test in enumerate(tests) if test not in tests[:number]]
    return table | {"data_tests": distinct, "columns": list(columns.values())}


def _unique(keys: Sequence[str]) -> dict[str, Any]:
    return {"sparseeinsum.keys_are_unique": {"arguments": {"keys": list(keys)}}}


def _key(name: str, keys: int | None) -> dict[str, Any]:
    """A key column with `keys` possible values; None for natural keys, which have no bound."""
    if keys is None:
        return _column(name, "not_null")
    return _column(name, "not_null", {"sparseeinsum.within_bound": {"arguments": {"bound": keys}}})


def _column(name: str, *tests: str | dict[str, Any]) -> dict[str, Any]:
    quoted = {} if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else {"quote": True}
    return {"name": name, **quoted, "data_tests": list(tests)}
