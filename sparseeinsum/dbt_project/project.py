"""Dbt: reads a project from disk: its folders, and how its models refer to tables."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sparseeinsum.errors import DbtError

Location = tuple[str, str, str]  # of a table: database, schema and name

# Files that make tables: the setting that lists their folders, its default, and the endings of their names.
_TABLE_FILES = {
    "model-paths": ("models", ("sql", "py")),
    "seed-paths": ("seeds", ("csv",)),
    "snapshot-paths": ("snapshots", ("sql", "yml")),
}


@dataclass(frozen=True, slots=True)
class DbtProject:
    """A dbt project.

    Attributes:
        folder: The folder with dbt_project.yml.
        models: The folder of models.
        macros: The folder of macros.
        tests: The folder of tests.
        files: The files of models, seeds and snapshots.
        references: The tables that dbt knew when it last read the project: location -> Jinja expression in models.
    """

    folder: Path
    models: Path
    macros: Path
    tests: Path
    files: tuple[Path, ...]
    references: Mapping[Location, str]

    def reference(self, location: Location, folds_case: bool) -> str | None:
        """The Jinja expression by which models refer to a table, ref(...) or source(...); None if dbt does not know it.

        Args:
            location: The location of the table.
            folds_case: Whether names that differ in case are equal in the database.

        Raises:
            DbtError: A model or seed may create this table, but dbt has not written its location yet.
        """
        folded = _folded(location, folds_case)
        for location_parts, reference in self.references.items():
            if _folded(location_parts, folds_case) == folded:
                return reference
        name = location[-1].lower()
        if not any(location_parts[-1].lower() == name for location_parts in self.references):
            self._check_parsed(name, ".".join(location))
        return None

    def reference_by_name(self, name: str) -> str | None:
        """The Jinja expression by which models refer to the table of a name, in whatever schema; None as above.

        Names that differ in case are equal.

        Raises:
            DbtError: dbt knows several tables of this name, or may know one later, as above.
        """
        named = (reference for location, reference in self.references.items() if location[-1].lower() == name.lower())
        tables = list(dict.fromkeys(named))
        if len(tables) > 1:
            raise DbtError(
                f"dbt knows several tables {name}: {' and '.join(tables)}; give the one that the program reads a name "
                "of its own, or declare no source for the others"
            )
        if not tables:
            self._check_parsed(name.lower(), name)
        return next(iter(tables), None)

    def _check_parsed(self, name: str, shown: str) -> None:
        """Refuse a table, by its name in lower case, that a file creates which dbt has not read yet."""
        file = next((file for file in self.files if file.stem.lower() == name), None)
        if file is not None:
            raise DbtError(
                f"the table {shown} may be created by {file.relative_to(self.folder)}, but dbt has not "
                "written where that creates it; run `dbt parse` in the project, then compile again"
            )


def read_project(folder: Path, program: str) -> DbtProject:
    """Read a project from disk; sources that an earlier compilation of `program` declared are ignored.

    Raises:
        DbtError: The folder has no project, or its files cannot be read.
    """
    path = folder / "dbt_project.yml"
    if not path.is_file():
        raise DbtError(
            f"{folder} is not a dbt project, because it has no dbt_project.yml; name its folder, or run `dbt init`"
        )
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise DbtError(f"{path} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise DbtError(f"{path} is not a mapping of settings, as dbt requires")
    models, macros, tests = (
        folder / _paths(content, f"{kind}-paths", f"{kind}s")[0] for kind in ("model", "macro", "test")
    )
    target = folder / str(content.get("target-path") or "target")
    own = (models / program).relative_to(folder)
    return DbtProject(folder, models, macros, tests, tuple(_files(folder, content)), _references(target, own))


def _paths(content: Mapping[str, Any], setting: str, default: str) -> list[str]:
    folders = content.get(setting) or [default]
    if not (isinstance(folders, list) and all(isinstance(folder, str) for folder in folders)):
        raise DbtError(f"{setting} of dbt_project.yml is {folders!r}, which is not a list of folders")
    return folders


def _files(folder: Path, content: Mapping[str, Any]) -> Iterator[Path]:
    for setting, (default, endings) in _TABLE_FILES.items():
        for path in _paths(content, setting, default):
            for ending in endings:
                yield from sorted((folder / path).rglob(f"*.{ending}"))


def _references(target: Path, own: Path) -> dict[Location, str]:
    """The tables in the manifest, which dbt writes when it reads the project; models have precedence over sources.

    Args:
        target: The folder of the manifest.
        own: The folder of the program's models; sources that are declared there will be replaced, so they are ignored.
    """
    path = target / "manifest.json"
    if not path.is_file():
        return {}
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        sources = [node for node in manifest["sources"].values() if Path(node["original_file_path"]).parent != own]
        models = [node for node in manifest["nodes"].values() if node["resource_type"] in ("model", "seed", "snapshot")]
        references = {_location(node, node["identifier"]): _source(node) for node in sources}
        return references | {_location(node, node["alias"]): _ref(node) for node in models}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DbtError(f"{path} is not a manifest of dbt ({error!r}); run `dbt parse` in the project") from None


def _location(node: Mapping[str, Any], name: str) -> Location:
    return str(node["database"]), str(node["schema"]), name


def _source(node: Mapping[str, Any]) -> str:
    return f"source('{node['source_name']}', '{node['name']}')"


def _ref(node: Mapping[str, Any]) -> str:
    version = node.get("version")
    return f"ref('{node['name']}')" if version is None else f"ref('{node['name']}', v={version!r})"


def _folded(location: Location, folds_case: bool) -> Location:
    database, schema, name = location
    return (database.lower(), schema.lower(), name.lower()) if folds_case else location
