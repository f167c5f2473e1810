"""EinDecomp: tensors that several operands read, which are sent once for all of them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference


@dataclass(frozen=True, slots=True)
class Sending:
    """A tensor that is sent to where several operands read it; in a search, they read what it sends.

    Attributes:
        tensor: The tensor.
        is_computed: Whether an EinSum computes it; else it is an input.
    """

    tensor: str
    is_computed: bool

    @property
    def output(self) -> Reference:
        """The tensor where it is sent to."""
        return Reference(sent_name(self.tensor), ())

    @property
    def operands(self) -> tuple[Reference, ...]:
        """The result of the EinSum that computes the tensor."""
        return (Reference(self.tensor, ()),) if self.is_computed else ()


Vertex: TypeAlias = EinSum | Sending


def sent_name(tensor: str) -> str:
    """The name of a tensor where it is sent to, which no tensor of a program has."""
    return f"sent {tensor}"


def source_of(name: str) -> str:
    """The name of the tensor that is sent to `name`; `name` itself if it is no name of `sent_name`."""
    return name.removeprefix("sent ")


def shared_tensors(graph: EinGraph) -> frozenset[str]:
    """The tensors that several operands read."""
    return frozenset(name for name, count in graph.count_readers().items() if count > 1)


def vertices_of(graph: EinGraph) -> Iterator[Vertex]:
    """The EinSums, and the sendings of tensors that several operands read, in topological order."""
    shared = shared_tensors(graph)
    yield from (Sending(name, is_computed=False) for name in graph.inputs if name in shared)
    for einsum in graph.einsums:
        operands = (
            replace(operand, tensor=sent_name(operand.tensor)) if operand.tensor in shared else operand
            for operand in einsum.operands
        )
        yield replace(einsum, operands=tuple(operands))
        if einsum.output.tensor in shared:
            yield Sending(einsum.output.tensor, is_computed=True)
