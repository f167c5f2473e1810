"""What dbt does with a project, in a few lines: models rendered with the package's macros, and run in their order.

It lets many plans be tried; dbt itself runs in test_dbt_projects.py.
"""

import graphlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment

from sparseeinsum import assets

SETTINGS = "name: project\nversion: '1.0'\nconfig-version: 2\nprofile: project\n"


def new_project(folder: Path) -> Path:
    """A project without models."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dbt_project.yml").write_text(SETTINGS)
    return folder


@dataclass
class Rendered:
    """A model, with the tables that it reads and how it is to be made."""

    text: str
    reads: set[str] = field(default_factory=set)
    settings: dict[str, Any] = field(default_factory=dict)


class _Adapter:
    """Finds the macro for an engine, as adapter.dispatch does."""

    def __init__(self, prefix: str, macros: dict[str, Any]) -> None:
        self._prefix, self._macros = prefix, macros

    def dispatch(self, name: str, package: str) -> Callable[..., str]:
        assert package == "sparseeinsum"
        found: Callable[..., str] = self._macros[f"{self._prefix}__{name}"]
        return found

    @staticmethod
    def quote(name: str) -> str:
        return f'"{name}"'


class _Package:
    """The macros of the package, which call each other."""

    def __init__(self, macros: dict[str, Any]) -> None:
        self._macros = macros

    def __getattr__(self, name: str) -> object:
        return self._macros[name]


def render(project: Path, program: str, prefix: str) -> dict[str, Rendered]:
    """All models of a program, each after those that it reads; `prefix` of the engine, duckdb or postgres."""
    folder = project / "models" / program
    relations = _sources(folder)
    models: dict[str, Rendered] = {}
    for path in sorted(folder.glob("*.sql")):
        model = Rendered("")
        environment = _environment(project, program, prefix, relations, model)
        text = environment.from_string(path.read_text()).render(this=f'"{path.stem}"')
        model.text = text
        models[path.stem] = model
    order = graphlib.TopologicalSorter({name: model.reads for name, model in models.items()}).static_order()
    return {name: models[name] for name in order}


def run(models: dict[str, Rendered], execute: Callable[[str], object]) -> None:
    """Make the tables of all models."""
    for name, model in models.items():
        assert model.settings["materialized"] == "table"
        execute(f'DROP TABLE IF EXISTS "{name}"')
        execute(f'CREATE TABLE "{name}" AS (\n{model.text}\n)')
        for hook in model.settings.get("post_hook", []):
            execute(hook.replace("{{ this }}", f'"{name}"'))


def _sources(folder: Path) -> dict[tuple[str, str], str]:
    path = folder / "sources.yml"
    found = {}
    for group in yaml.safe_load(path.read_text())["sources"] if path.exists() else []:
        for table in group["tables"]:
            location = table.get("config", {}).get("meta", {}).get("external_location")
            quoted = ".".join(f'"{part}"' for part in (group.get("database"), group.get("schema")) if part)
            found[group["name"], table["name"]] = location or f'{quoted}."{table.get("identifier")}"'
    return found


def _environment(
    project: Path, program: str, prefix: str, relations: dict[tuple[str, str], str], model: Rendered
) -> Environment:
    environment = Environment(extensions=["jinja2.ext.do"])

    def ref(name: str) -> str:
        model.reads.add(name)
        return f'"{name}"'

    def config(**settings: Any) -> str:  # noqa: ANN401  # any setting
        model.settings = settings
        return ""

    package = "".join(path.read_text() for path in sorted(assets.path("sql/dbt/macros").glob("*.sql")))
    macros: dict[str, Any] = {}
    environment.globals |= {
        "ref": ref,
        "source": lambda group, table: relations[group, table],
        "config": config,
        "return": lambda value: value,
        "adapter": _Adapter(prefix, macros),
        "sparseeinsum": _Package(macros),
        "execute": True,
    }
    module = environment.from_string(package).module
    macros |= {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    own = project / "macros" / f"{program}.sql"
    if own.exists():
        checks = environment.from_string(own.read_text()).module
        environment.globals |= {name: getattr(checks, name) for name in dir(checks) if name.startswith(program)}
    return environment
