"""Dbt: a project on disk: where its files go, and how its models refer to tables."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sparseeinsum.errors import DbtError

Place = tuple[str, str, str]  # of a table: database, schema and name

_FILES_OF_MODELS = {"model-paths": ("models", ("sql", "py")), "seed-paths": ("seeds", ("csv",))}
_FILES_OF_MODELS |= {"snapshot-paths": ("snapshots", ("sql", "yml"))}


@dataclass(frozen=True, slots=True)
class DbtProject:
    """A dbt project.

    Attributes:
        folder: With dbt_project.yml.
        models: Folder of models.
        macros: Folder of macros.
        tests: Folder of tests.
        files: Of models, seeds and snapshots.
        known: Tables that dbt knew when it last read the project, and what its models call them.
    """

    folder: Path
    models: Path
    macros: Path
    tests: Path
    files: tuple[Path, ...]
    known: Mapping[Place, str]

    def reference(self, place: Place, folds_case: bool) -> str | None:
        """What models call a table, ref(...) or source(...); None where dbt knows none such.

        Args:
            place: Where the table is.
            folds_case: Whether the database takes names that differ in case for the same.

        Raises:
            DbtError: A model or seed may make this table, but dbt has not yet said where it lies.
        """
        wanted = _folded(place, folds_case)
        for known, reference in self.known.items():
            if _folded(known, folds_case) == wanted:
                return reference
        name = wanted[-1]
        named = {place[-1].lower() for place in self.known}
        made = next((file for file in self.files if file.stem.lower() == name.lower()), None)
        if made is not None and name.lower() not in named:
            raise DbtError(
                f"the table {'.'.join(place)} may be what {made.relative_to(self.folder)} makes, but dbt has not told "
                "yet where that lies; run `dbt parse` in the project, then compile again"
            )
        return None


def read_project(folder: Path, program: str) -> DbtProject:
    """A project as it is on disk, but for what an earlier compilation of a program told dbt.

    Raises:
        DbtError: The folder holds none, or its files cannot be read.
    """
    path = folder / "dbt_project.yml"
    if not path.is_file():
        raise DbtError(
            f"{folder} is no dbt project, because it has no dbt_project.yml; name its folder, or run `dbt init`"
        )
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise DbtError(f"{path} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise DbtError(f"{path} is no mapping of settings, as dbt has it")
    models, macros, tests = (
        folder / _paths(content, f"{kind}-paths", f"{kind}s")[0] for kind in ("model", "macro", "test")
    )
    target = folder / str(content.get("target-path") or "target")
    own = (models / program).relative_to(folder)
    return DbtProject(folder, models, macros, tests, tuple(_files(folder, content)), _known(target, own))


def _paths(content: Mapping[str, Any], setting: str, default: str) -> list[str]:
    found = content.get(setting) or [default]
    if not (isinstance(found, list) and all(isinstance(each, str) for each in found)):
        raise DbtError(f"{setting} of dbt_project.yml is {found!r}, and no list of folders")
    return found


def _files(folder: Path, content: Mapping[str, Any]) -> Iterator[Path]:
    for setting, (default, endings) in _FILES_OF_MODELS.items():
        for path in _paths(content, setting, default):
            for ending in endings:
                yield from sorted((folder / path).rglob(f"*.{ending}"))


def _known(target: Path, own: Path) -> dict[Place, str]:
    """Tables of the manifest, which dbt writes whenever it reads the project; models win over sources.

    Args:
        target: Folder of the manifest.
        own: Folder of the program's models, whose sources are told anew.
    """
    path = target / "manifest.json"
    if not path.is_file():
        return {}
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        told = [each for each in manifest["sources"].values() if Path(each["original_file_path"]).parent != own]
        sources = {_place(each, each["identifier"]): _source(each) for each in told}
        nodes = [each for each in manifest["nodes"].values() if each["resource_type"] in ("model", "seed", "snapshot")]
        return sources | {_place(each, each["alias"]): _ref(each) for each in nodes}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DbtError(f"{path} is no manifest of dbt's ({error!r}); run `dbt parse` in the project") from None


def _place(node: Mapping[str, Any], name: str) -> Place:
    return str(node["database"]), str(node["schema"]), name


def _source(node: Mapping[str, Any]) -> str:
    return f"source('{node['source_name']}', '{node['name']}')"


def _ref(node: Mapping[str, Any]) -> str:
    version = node.get("version")
    return f"ref('{node['name']}')" if version is None else f"ref('{node['name']}', v={version!r})"


def _folded(place: Place, folds_case: bool) -> Place:
    database, schema, name = place
    return (database.lower(), schema.lower(), name.lower()) if folds_case else place
