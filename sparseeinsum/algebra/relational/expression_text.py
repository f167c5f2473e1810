"""Algebra, relational: expressions as text: a line for every operator, and its inputs indented below."""

from collections.abc import Callable

from sparseeinsum.algebra.relational.relational_expressions import (
    Aggregation,
    Complete,
    Concat,
    Expression,
    Filter,
    Input,
    Join,
    Rekey,
    Tile,
    Transform,
)
from sparseeinsum.algebra.relational.traversal import Node
from sparseeinsum.semantics.exactness import JoinKind

_INDENT = "  "


def write_expression(expression: Expression) -> str:
    """The text of an expression, with the type of what every operator returns."""
    return write_tree(expression, lambda node: f"{write_operator(node)}: {node.type}")


def write_tree(root: Node, write: Callable[[Node], str]) -> str:
    """A line for every operator of a tree; below an operator that occurs again, its inputs are not repeated.

    Args:
        root: The operator at the top.
        write: Returns the line of an operator.
    """
    lines = []
    written: set[int] = set()
    waiting: list[tuple[Node, int]] = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        line = f"{_INDENT * depth}{write(node)}"
        if id(node) in written and node.inputs:
            lines.append(f"{line} (as above)")
            continue
        lines.append(line)
        written.add(id(node))
        waiting += [(operand, depth + 1) for operand in reversed(node.inputs)]  # type: ignore[misc]  # of its kind
    return "\n".join(lines)


def write_positions(positions: tuple[int, ...]) -> str:
    """Positions in a key as text, such as <0, 2>."""
    return f"<{', '.join(map(str, positions))}>"


def write_operator(node: Expression) -> str:
    """The text of an operator without its inputs."""
    match node:
        case Input(name):
            return name
        case Aggregation(_, group_by, fold):
            return f"aggregation by {write_positions(group_by)}, {fold}"
        case Join(_, _, left_keys, right_keys, kernel, kind):
            prefix = "" if kind == JoinKind.INNER else f"{kind.value} "
            return f"{prefix}join on {write_positions(left_keys)} = {write_positions(right_keys)}, {kernel}"
        case Rekey(_, keys):
            return f"rekey {keys}"
        case Filter(_, predicate):
            return f"filter {predicate}"
        case Transform(_, kernel):
            return f"transform {kernel}"
        case Tile(_, axis, size):
            return f"tile axis {axis} by {size}"
        case Concat(_, key, axis, _, fill):
            fill_text = "" if fill is None else f", {fill!r} where nothing is"
            return f"concat by k{key} along axis {axis}{fill_text}"
        case Complete(_, absent, _):
            return f"complete with {absent.fill!r}"
