"""Algebra: operators in an order in which each comes after those that it reads, without recursion."""

from collections.abc import Sequence
from typing import Protocol, TypeVar


class _Node(Protocol):
    @property
    def inputs(self) -> "Sequence[_Node]": ...


Node = TypeVar("Node", bound=_Node)


def in_order(root: Node) -> list[Node]:
    """All that a tree consists of, what is read before what reads it; what is read twice is there once."""
    found: dict[int, Node] = {}
    waiting: list[tuple[Node, bool]] = [(root, False)]
    while waiting:
        each, is_read = waiting.pop()
        if id(each) in found:
            continue
        if is_read:
            found[id(each)] = each
        else:
            waiting.append((each, True))
            waiting += [(operand, False) for operand in reversed(each.inputs)]  # type: ignore[misc]  # of its kind
    return list(found.values())
