"""Algebra: what operators read, and an order in which each comes after that, without recursion."""

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar


class _Node(Protocol):
    @property
    def inputs(self) -> "Sequence[_Node]": ...


Node = TypeVar("Node", bound=_Node)
Operand = TypeVar("Operand", covariant=True)


class OneInput(Generic[Operand]):
    """An operator that reads one other."""

    __slots__ = ()

    input: Operand

    @property
    def inputs(self) -> tuple[Operand, ...]:
        """What it reads."""
        return (self.input,)


def topological_order(root: Node) -> list[Node]:
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
