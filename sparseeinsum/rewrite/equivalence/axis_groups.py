"""Rewriting: programs in, which axes have the same bound because statements give them the same label out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sparseeinsum.errors import ShapeError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.operators.expressions import AxisBound
from sparseeinsum.rewrite.equivalence.normal_form import Place


def scoped(name: str, number: int, program: Program) -> str:
    """A tensor's name among several programs, which share their inputs but not their results."""
    is_input = name in program.inputs
    return name if is_input else f"~{number}:{name}"  # behind all inputs in order


@dataclass(frozen=True, slots=True)
class AxisGroups:
    """Axes that share a bound, and the bounds that are declared."""

    _parents: dict[Place, Place] = field(default_factory=dict)
    _bounds: dict[Place, int] = field(default_factory=dict)

    @classmethod
    def of(cls, programs: Sequence[Program], outputs: Sequence[str]) -> "AxisGroups":
        """The groups of programs whose outputs are to be compared axis by axis.

        Raises:
            ShapeError: Axes that share a label are declared with two bounds.
        """
        groups = cls()
        for number, program in enumerate(programs):
            groups._share_labels(number, program)
        for program_number, name in enumerate(outputs[1:], 1):
            rank = groups._rank(programs[0], outputs[0])
            for axis in range(rank):
                first = scoped(outputs[0], 0, programs[0])
                groups._unite((first, axis), (scoped(name, program_number, programs[program_number]), axis))
        for number, program in enumerate(programs):
            groups._declare(number, program)
        return groups

    def top(self, place: Place) -> Place:
        """The least axis of the group."""
        while self._parents.setdefault(place, place) != place:
            place = self._parents[place]
        return place

    def bound(self, place: Place) -> int | None:
        """The bound that some axis of the group is declared with; None where none is."""
        return self._bounds.get(self.top(place))

    def tops(self, places: Iterable[Place]) -> set[Place]:
        """The least axes of the groups of some."""
        return {self.top(place) for place in places}

    def _share_labels(self, number: int, program: Program) -> None:
        for einsum in program.einsums:
            first: dict[str, Place] = {}
            for reference in (*einsum.operands, einsum.output):
                name = scoped(reference.tensor, number, program)
                for axis, label in enumerate(reference.labels):
                    self._unite((name, axis), first.setdefault(label, (name, axis)))
        for generated in program.generated:
            if isinstance(generated.bound, AxisBound):
                source = scoped(generated.bound.tensor, number, program), generated.bound.axis
                self._unite((scoped(generated.name, number, program), 0), source)

    def _declare(self, number: int, program: Program) -> None:
        known = [
            ((scoped(each.tensor.name, number, program), axis), of.bound)
            for each in program.declared
            for axis, of in enumerate(each.tensor.axes)
        ]
        known += [
            ((scoped(each.name, number, program), 0), each.bound)
            for each in program.generated
            if isinstance(each.bound, int)
        ]
        for place, bound in known:
            before = self._bounds.setdefault(self.top(place), bound)
            if before != bound:
                raise ShapeError(
                    f"axis {place[1]} of {place[0]} is declared with the bound {bound}, but shares a label with one of "
                    f"the bound {before}"
                )

    @staticmethod
    def _rank(program: Program, name: str) -> int:
        (labels,) = [einsum.output.labels for einsum in program.einsums if einsum.output.tensor == name]
        return len(labels)

    def _unite(self, one: Place, other: Place) -> None:
        least, greatest = sorted((self.top(one), self.top(other)))
        self._parents[greatest] = least
