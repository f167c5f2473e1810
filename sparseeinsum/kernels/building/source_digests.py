"""Kernels: digests the sources of compiled code, so that a change recompiles what depends on it, and no more."""

import ast
import hashlib
import importlib.metadata
import platform
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from sparseeinsum.environment import assets
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.groups import GROUPS, HOSTS, kernels_of, measures_in_use
from sparseeinsum.kernels.index_checks import are_checked

_KERNELS = "sparseeinsum.kernels"
_OPERATORS = "sparseeinsum.operators"  # kernels are generated from its records
_FRONTEND, _CODE_GENERATION = (
    ("frontend", "exporting"),
    ("code_generation", "externals", "processors", "targets"),
)  # modules of this folder


def digest_of_bitcode(group: str) -> str:
    """Digest a group's modules and all that they import, the names of its kernels, and the compiler's version."""
    names = (group, *kernels_of(group), *measures_in_use())
    versions = (_version("numba"), _version("llvmlite"), platform.machine(), str(are_checked()))
    return _digest(map(str.encode, (*names, *versions)), _contents(_sources_of(group), _FRONTEND))


def digest_of_object(group: str, target: Target) -> str:
    """Digest a group's sources and the target's processor."""
    described = (digest_of_bitcode(group), str(target), *target.description)
    return _digest(map(str.encode, described), _contents((), _CODE_GENERATION))


def _contents(files: Iterable[Path], modules: Iterable[str]) -> Iterator[bytes]:
    yield from (file.read_bytes() for file in files)
    yield from ((Path(__file__).parent / f"{module}.py").read_bytes() for module in modules)


def _digest(*sources: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in sources:
        for content in part:
            digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()[:24]


def _version(package: str) -> str:
    return importlib.metadata.version(package)


@cache
def _sources_of(group: str) -> tuple[Path, ...]:
    """Return the files of a group: its modules, the modules that they import, and the files of udfs/ that they load."""
    waiting = [_module_file(f"{_KERNELS}.compiled.{module}") for module in GROUPS[group].modules]
    # It lists the functions of a host one by one.
    sources = {_module_file(f"{_KERNELS}.compiled.group_functions")} if group in HOSTS else set()
    while waiting:
        file = waiting.pop()
        if file not in sources:
            sources.add(file)
            waiting += _imported(file)
    return tuple(sorted(sources))


@cache
def _imported(file: Path) -> tuple[Path, ...]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return tuple(path for node in ast.walk(tree) for path in _imported_by(node))


def _imported_by(node: ast.AST) -> Iterator[Path]:
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith((_KERNELS, _OPERATORS)):
        for name in (str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)):
            if (file := _module_file(name)).is_file():
                yield file
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "load_kernels":
        (argument,) = node.args
        yield assets.path(f"udfs/{ast.literal_eval(argument)}.py")


def _module_file(name: str) -> Path:
    return assets.PACKAGE.parent.joinpath(*name.split(".")).with_suffix(".py")
