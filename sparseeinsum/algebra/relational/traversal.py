"""Algebra: the inputs of operators, and a topological order of them, computed without recursion."""

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar


class _TreeNode(Protocol):
    @property
    def inputs(self) -> "Sequence[_TreeNode]": ...


Node = TypeVar("Node", bound=_TreeNode)
Operand = TypeVar("Operand", covariant=True)


class OneInput(Generic[Operand]):
    """An operator with one input."""

    __slots__ = ()

    input: Operand

    @property
    def inputs(self) -> tuple[Operand, ...]:
        """The operators that this one reads."""
        return (self.input,)


def topological_order(root: Node) -> list[Node]:
    """All operators below and including `root`, each once, and each after its inputs."""
    visited: dict[int, Node] = {}
    waiting: list[tuple[Node, bool]] = [(root, False)]
    while waiting:
        node, has_inputs = waiting.pop()
        if id(node) in visited:
            continue
        if has_inputs:
            visited[id(node)] = node
        else:
            waiting.append((node, True))
            waiting += [(operand, False) for operand in reversed(node.inputs)]  # type: ignore[misc]  # of its kind
    return list(visited.values())
