"""Kernels: reads the constants of udfs/ without importing numba."""

import ast
from collections.abc import Iterator, Mapping

from sparseeinsum.environment import assets


def constants_of(name: str) -> Mapping[str, object]:
    """Return the constants of `udfs/<name>.py` that can be computed without imports, by name."""
    constants: dict[str, object] = {}
    for statement in ast.parse(assets.read(f"udfs/{name}.py")).body:
        if isinstance(statement, ast.Assign):
            constants.update(_assigned(statement, constants))
    return constants


def _assigned(statement: ast.Assign, constants: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield the names and values that a statement assigns; nothing if the value needs an unknown name."""
    expression = compile(ast.Expression(statement.value), "udfs", "eval")
    try:
        value = eval(expression, {"__builtins__": {"range": range}}, dict(constants))
    except NameError:
        return
    (target,) = statement.targets
    if isinstance(target, ast.Tuple):
        yield from zip((ast.unparse(name) for name in target.elts), value, strict=True)
    else:
        yield ast.unparse(target), value
