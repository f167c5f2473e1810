"""Algebra, relational: expressions as text for readers: a line for every operator, what it reads indented below."""

from collections.abc import Callable

from sparseeinsum.algebra.relational.expressions import (
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
    """An expression, and the type of what every operator returns."""
    return write_tree(expression, lambda each: f"{_operator(each)}: {each.type}")


def write_tree(root: Node, write: Callable[[Node], str]) -> str:
    """A line for every operator of a tree; below one that is read again stands nothing more."""
    lines = []
    written: set[int] = set()
    waiting: list[tuple[Node, int]] = [(root, 0)]
    while waiting:
        each, depth = waiting.pop()
        line = f"{_INDENT * depth}{write(each)}"
        if id(each) in written and each.inputs:
            lines.append(f"{line} (as above)")
            continue
        lines.append(line)
        written.add(id(each))
        waiting += [(operand, depth + 1) for operand in reversed(each.inputs)]  # type: ignore[misc]  # of its kind
    return "\n".join(lines)


def write_positions(positions: tuple[int, ...]) -> str:
    """Positions in a key, as in <0, 2>."""
    return f"<{', '.join(map(str, positions))}>"


def _operator(node: Expression) -> str:
    match node:
        case Input(name):
            return name
        case Aggregation(_, group_by, fold):
            return f"aggregation by {write_positions(group_by)}, {fold}"
        case Join(_, _, left_keys, right_keys, kernel, kind):
            outer = "" if kind == JoinKind.INNER else f"{kind.value} "
            return f"{outer}join on {write_positions(left_keys)} = {write_positions(right_keys)}, {kernel}"
        case Rekey(_, keys):
            return f"rekey {keys}"
        case Filter(_, predicate):
            return f"filter {predicate}"
        case Transform(_, kernel):
            return f"transform {kernel}"
        case Tile(_, axis, size):
            return f"tile axis {axis} by {size}"
        case Concat(_, key, axis, _, fill):
            filled = "" if fill is None else f", {fill!r} where nothing is"
            return f"concat by k{key} along axis {axis}{filled}"
        case Complete(_, absent, _):
            return f"complete with {absent.fill!r}"
