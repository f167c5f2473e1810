"""What dbt does with a project, in a few lines: models rendered with the package's macros, and run in their order.

It lets many plans be tried; dbt itself runs in test_dbt_projects.py.
"""

import graphlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment
from sqlglot import exp

from sparseeinsum.environment import assets

SETTINGS = "name: project\nversion: '1.0'\nconfig-version: 2\nprofile: project\n"


def new_project(folder: Path) -> Path:
    """A project without models."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dbt_project.yml").write_text(SETTINGS)
    return folder


@dataclass
class Rendered:
    """A rendered model, with the tables that it reads and its settings."""

    text: str
    reads: set[str]
    settings: dict[str, Any]


class _Adapter:
    """Finds the macro for an engine, as adapter.dispatch does."""

    def __init__(self, prefix: str, macros: dict[str, Any]) -> None:
        self._prefix, self._macros = prefix, macros

    def dispatch(self, name: str, package: str) -> Callable[..., str]:
        assert package == "sparseeinsum"
        macro: Callable[..., str] = self._macros[f"{self._prefix}__{name}"]
        return macro


class _Package:
    """The macros of the package, which call each other."""

    def __init__(self, macros: dict[str, Any]) -> None:
        self._macros = macros

    def __getattr__(self, name: str) -> object:
        return self._macros[name]


@lru_cache
def _package(prefix: str) -> Environment:
    """The macros and variables that templates may use on an engine."""
    environment = Environment(extensions=["jinja2.ext.do"])
    macros: dict[str, Any] = {}
    environment.globals |= {
        "return": lambda value: value,
        "adapter": _Adapter(prefix, macros),
        "sparseeinsum": _Package(macros),
    }
    text = "".join(path.read_text() for path in sorted(assets.path("sql/dbt/macros").glob("*.sql")))
    macros |= vars(environment.from_string(text).module)
    return environment


@dataclass(frozen=True)
class PlainFiles:
    """The queries of a program's models for another engine, and those of its tests, by the names of their files."""

    models: dict[str, str]
    tests: dict[str, str]


def render_plain(project: Path, program: str, dialect: str) -> PlainFiles:
    """All models and tests of a program for another engine, in which tables are in no schema."""

    def identifier(name: str) -> str:
        return exp.to_identifier(name, quoted=True).sql(dialect)

    context = {
        "source": lambda group, table: identifier(table),  # the identifier is the same
        "ref": identifier,
        "config": lambda **options: "",
    }
    models, tests = (
        {
            path.stem: Environment().from_string(path.read_text(), globals=context).render()  # SQL
            for path in sorted((project / kind / program).glob("*.sql"))
        }
        for kind in ("models", "tests")
    )
    return PlainFiles(models, tests)


def render(project: Path, program: str, prefix: str) -> dict[str, Rendered]:
    """All models of a program in the order of their dependencies; `prefix` names the engine: duckdb or postgres."""
    environment = _package(prefix)
    folder, checks = project / "models" / program, project / "macros" / f"{program}.sql"
    relations = _sources(folder)
    context: dict[str, Any] = {"source": lambda group, table: relations[group, table]}
    if checks.exists():
        context |= vars(environment.from_string(checks.read_text(), globals=context).module)
    models = {path.stem: _rendered(environment, path, context) for path in sorted(folder.glob("*.sql"))}
    order = graphlib.TopologicalSorter({name: model.reads for name, model in models.items()}).static_order()
    return {name: models[name] for name in order}


def _rendered(environment: Environment, path: Path, context: dict[str, Any]) -> Rendered:
    reads: set[str] = set()
    settings: dict[str, Any] = {}

    def ref(name: str) -> str:
        reads.add(name)
        return f'"{name}"'

    def config(**options: Any) -> str:  # noqa: ANN401  # any setting
        settings.update(options)
        return ""

    own = {"ref": ref, "config": config, "this": f'"{path.stem}"'}
    return Rendered(environment.from_string(path.read_text(), globals={**context, **own}).render(), reads, settings)


def run(models: dict[str, Rendered], execute: Callable[[str], object]) -> None:
    """Create the tables of all models."""
    for name, model in models.items():
        assert model.settings["materialized"] == "table"
        execute(f'DROP TABLE IF EXISTS "{name}"')
        execute(f'CREATE TABLE "{name}" AS (\n{model.text}\n)')
        for hook in model.settings.get("post_hook", []):
            execute(hook.replace("{{ this }}", f'"{name}"'))


def _sources(folder: Path) -> dict[tuple[str, str], str]:
    path = folder / "sources.yml"
    tables = {}
    for group in yaml.safe_load(path.read_text())["sources"] if path.exists() else []:
        for table in group["tables"]:
            location = table.get("config", {}).get("meta", {}).get("external_location")
            quoted = ".".join(f'"{part}"' for part in (group.get("database"), group.get("schema")) if part)
            tables[group["name"], table["name"]] = location or f'{quoted}."{table.get("identifier")}"'
    return tables
