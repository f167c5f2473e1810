"""No room imports a room further right, and importing the package loads no heavy library."""

import ast
import graphlib
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

import sparseeinsum as se
from sparseeinsum.environment import assets

PACKAGE = Path(se.__file__).parent

# What every room may import; these import only each other.
FOUNDATIONS = ("errors", "environment", "presentation", "version")

ROOMS = (
    "operators",
    "language",
    "semantics",
    "statistics",
    "rewrite",
    "decompose",
    "algebra",
    "render",
    "kernels",
    "plans",
    "engines",
    "storage",
    "loading",
    "results",
    "pipeline",
    "dbt_project",
    "models",
    "api",
    "server_functions",  # which databases name
    "sparseeinsum",  # the public names, __init__.py
    "dbt_plugin",
    "cli",
    "__main__",  # python -m sparseeinsum
)

# Packages that only extras install, or that take long to import and few programs need: imported where they are used.
OPTIONAL = {"pandas", "polars", "psycopg", "cupy", "sparse", "torch", "xarray", "scipy", "safetensors", "onnx"}
DOORS = {"sparseeinsum", "sparseeinsum.environment.extras"}  # import by name: public names, and packages of extras
IMPORTING = {"__import__", "import_module"}

# What the files of udfs/ may import, so that a host without this package can run them.
KERNEL_IMPORTS = {"numba", "numpy", "math", "collections", "types"}


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py")) if "_assets" not in path.parts}


def room_of(module: str) -> str:
    first, *rest = module.split(".")
    return rest[0] if rest else first


def imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Full names that statements import: modules, or names in modules."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def nodes_of(module: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))))


@cache
def own_imports(module: str) -> set[str]:
    """Modules of the package that a module imports."""
    modules = set()
    for name in imported(nodes_of(module)):
        if name.split(".")[0] == PACKAGE.name:
            modules.add(name if name in MODULES else name.rpartition(".")[0])
    return modules | late_imports(module)


def late_imports(module: str) -> set[str]:
    """Modules of the package that a module names for `extras.imported`."""
    texts = {node.value for node in nodes_of(module) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {text for text in texts if "." in text and text in MODULES}


def test_modules_are_found() -> None:
    assert {"sparseeinsum", "sparseeinsum.pipeline.planning", "sparseeinsum.decompose.search_tasks"} <= set(MODULES)
    assert own_imports("sparseeinsum.decompose.search_tasks") == {
        "sparseeinsum.decompose.choice",
        "sparseeinsum.decompose.model",
        "sparseeinsum.decompose.repartition_tables",
        "sparseeinsum.language.eingraph",
        "sparseeinsum.language.tensors",
    }
    assert "sparseeinsum.pipeline.planning" in own_imports("sparseeinsum.api.database")
    late = late_imports("sparseeinsum.api.database")
    assert {"sparseeinsum.dbt_project.project_files", "sparseeinsum.pipeline.checking"} < late


def test_every_module_belongs_to_a_room() -> None:
    assert {room_of(module) for module in MODULES} <= {*FOUNDATIONS, *ROOMS}, "say in ROOMS where it stands"


def test_no_room_imports_a_later_room() -> None:
    assert {
        (module, name) for module in MODULES for name in own_imports(module) if not is_allowed(module, name)
    } == set()


def is_allowed(module: str, name: str) -> bool:
    """Whether a module may import another one, by their rooms."""
    room, imported_room = room_of(module), room_of(name)
    if imported_room in FOUNDATIONS:
        return True
    return room not in FOUNDATIONS and ROOMS.index(imported_room) <= ROOMS.index(room)


def test_no_modules_import_each_other() -> None:
    graph = {module: own_imports(module) - {module} for module in MODULES}
    assert set(graphlib.TopologicalSorter(graph).static_order()) == set(MODULES)


def test_imports_stand_at_the_top() -> None:
    for module in MODULES:
        nodes = nodes_of(module)
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        inside = {name.split(".")[0] for function in functions for name in imported(ast.walk(function))}
        assert inside <= OPTIONAL, module
        if module not in DOORS:
            assert IMPORTING.isdisjoint(names_of_calls(nodes)), module


def names_of_calls(nodes: Iterable[ast.AST]) -> set[str]:
    """The names of called functions, without what they are attributes of."""
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    names = {function.id for function in called if isinstance(function, ast.Name)}
    return names | {function.attr for function in called if isinstance(function, ast.Attribute)}


@pytest.mark.parametrize("folder", ["udfs", "stats", "sql"])
def test_database_modules_do_not_import_the_package(folder: str) -> None:
    paths = list(assets.path(folder).rglob("*"))
    assert paths
    for path in paths:
        if path.suffix == ".py":
            names = {name.split(".")[0] for name in imported(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))}
            assert names <= KERNEL_IMPORTS, path


def test_import_is_light(db: se.Database) -> None:
    """Importing loads no compiler and no data frame library, and before first use hardly any module."""
    assert db.connection is not None
    heavy = sorted({"numba", "llvmlite", "egglog", *OPTIONAL})
    early = sorted({"numpy", "pyarrow", "sqlglot", "lark", "rich", "sparseeinsum.pipeline.planning", *heavy})
    program = f"import sys, sparseeinsum\nprint([name for name in {early!r} if name in sys.modules])\n"
    program += f"sparseeinsum.connect()\nprint([name for name in {heavy!r} if name in sys.modules])"
    finished = subprocess.run(
        [sys.executable, "-c", program], cwd=PACKAGE.parent, capture_output=True, text=True, timeout=300, check=True
    )
    assert finished.stdout.split() == ["[]"] * 2
