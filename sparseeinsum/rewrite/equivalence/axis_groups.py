"""Rewriting: finds the axes of several programs that have the same bound, because they share a label."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sparseeinsum.errors import ShapeError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.generated import GeneratedTensor
from sparseeinsum.operators.expressions import AxisBound
from sparseeinsum.rewrite.equivalence.normal_form import AxisPosition


def scoped_name(name: str, number: int, program: Program) -> str:
    """The name of a tensor among several programs, which share their inputs but not their results.

    Args:
        name: The name in its program.
        number: The number of the program.
        program: The program.
    """
    is_input = name in program.inputs
    return name if is_input else f"~{number}:{name}"  # ~ sorts results after all inputs


@dataclass(frozen=True, slots=True)
class AxisGroups:
    """Groups of axes that share a bound, as a union-find forest, and the declared bounds."""

    _parents: dict[AxisPosition, AxisPosition] = field(default_factory=dict)
    _bounds: dict[AxisPosition, int] = field(default_factory=dict)

    @classmethod
    def of_programs(cls, programs: Sequence[Program], outputs: Sequence[str]) -> "AxisGroups":
        """The groups of programs whose outputs are compared axis by axis.

        Args:
            programs: The programs.
            outputs: The name of the output of each program.

        Raises:
            ShapeError: Axes that share a label are declared with two bounds.
        """
        groups = cls()
        for number, program in enumerate(programs):
            groups._share_labels(number, program)
        for program_number, name in enumerate(outputs[1:], 1):
            rank = groups._rank(programs[0], outputs[0])
            for axis in range(rank):
                first = scoped_name(outputs[0], 0, programs[0])
                groups._union((first, axis), (scoped_name(name, program_number, programs[program_number]), axis))
        for number, program in enumerate(programs):
            groups._declare(number, program)
        return groups

    def representative(self, position: AxisPosition) -> AxisPosition:
        """The least axis of the group of an axis."""
        while self._parents.setdefault(position, position) != position:
            position = self._parents[position]
        return position

    def bound(self, position: AxisPosition) -> int | None:
        """The declared bound of an axis of the group; None if there is none."""
        return self._bounds.get(self.representative(position))

    def _share_labels(self, number: int, program: Program) -> None:
        for einsum in program.einsums:
            first: dict[str, AxisPosition] = {}
            for reference in (*einsum.operands, einsum.output):
                name = scoped_name(reference.tensor, number, program)
                for axis, label in enumerate(reference.labels):
                    self._union((name, axis), first.setdefault(label, (name, axis)))
        for generated in _vectors(program):
            if isinstance(generated.bound, AxisBound):
                source = scoped_name(generated.bound.tensor, number, program), generated.bound.axis
                self._union((scoped_name(generated.name, number, program), 0), source)

    def _declare(self, number: int, program: Program) -> None:
        """Store the bounds that a program declares, and raise a ShapeError where one differs from that of its group."""
        declared = [
            ((scoped_name(declaration.tensor.name, number, program), axis), declared_axis.bound)
            for declaration in program.declared
            for axis, declared_axis in enumerate(declaration.tensor.axes)
        ]
        declared += [
            ((scoped_name(declaration.name, number, program), 0), declaration.bound)
            for declaration in _vectors(program)
            if isinstance(declaration.bound, int)
        ]
        for position, bound in declared:
            earlier = self._bounds.setdefault(self.representative(position), bound)
            if earlier != bound:
                raise ShapeError(
                    f"axis {position[1]} of {position[0]} is declared with the bound {bound}, but shares a label with "
                    f"one of the bound {earlier}"
                )

    @staticmethod
    def _rank(program: Program, name: str) -> int:
        (labels,) = [einsum.output.labels for einsum in program.einsums if einsum.output.tensor == name]
        return len(labels)

    def _union(self, first: AxisPosition, second: AxisPosition) -> None:
        least, greatest = sorted((self.representative(first), self.representative(second)))
        self._parents[greatest] = least


def _vectors(program: Program) -> Iterator[GeneratedTensor]:
    """The generated vectors of a program; no rules are known for its index maps."""
    return (generated for generated in program.generated if isinstance(generated, GeneratedTensor))
