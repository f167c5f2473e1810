"""Loops: what a step computes: the next values of the state, and numbers for the history and the condition."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sparseeinsum.errors import PlanError, SemanticsError, ShapeError
from sparseeinsum.language.binding import bind
from sparseeinsum.language.eingraph import EinSum, Program, needed_einsums
from sparseeinsum.language.loop_conditions import LoopCondition, parse_condition
from sparseeinsum.language.syntax import STEP
from sparseeinsum.language.tensors import Decomposition, StoredTensor, Tensor
from sparseeinsum.presentation.spelling import did_you_mean

CHANGED = "changed"  # in conditions and histories: the number of values of the state that a step has changed


@dataclass(frozen=True, slots=True)
class LoopProgram:
    """A program whose outputs are what a step needs.

    Attributes:
        program: The program; its outputs are the next values of the state and the numbers.
        state: The names of the tensors that a step replaces, each with that of its next value.
        numbers: Names of results without axes that every step returns.
        history: The names that the history has, of `numbers` and `CHANGED`.
        condition: Ends the loop; None if there is none.
    """

    program: Program
    state: Mapping[str, str]
    numbers: tuple[str, ...]
    history: tuple[str, ...]
    condition: LoopCondition | None

    @property
    def counts_changes(self) -> bool:
        """Whether every step counts the values that it has changed."""
        return CHANGED in self.recorded

    @property
    def recorded(self) -> tuple[str, ...]:
        """All names whose values are kept for every step: those of the history, then others of the condition."""
        read = () if self.condition is None else self.condition.names
        return tuple(dict.fromkeys((*self.history, *(name for name in read if name != STEP))))

    def with_layouts(self, tiles: Mapping[str, Decomposition]) -> "LoopProgram":
        """The same with the next values in the layouts of the state, which are given by name of the state."""
        labels = {einsum.output.tensor: einsum.output.labels for einsum in self.program.einsums}
        layouts = dict(self.program.layouts)
        for name, following in self.state.items():
            pairs = zip(labels[following], tiles[name].tiles, strict=True)
            layouts[following] = frozenset((label, tile) for label, tile in pairs if tile)
        return replace(self, program=replace(self.program, layouts=tuple(layouts.items())))


def loop_program(program: Program, state: Mapping[str, str], history: Iterable[str], until: str | None) -> LoopProgram:
    """The steps of a program.

    Args:
        program: The program.
        state: The names of the tensors that a step replaces, each with that of its next value; if empty, what the
            program declares.
        history: Names of results without axes that the history has.
        until: The condition that ends the loop.

    Raises:
        PlanError: There is no state, or the program does not compute its next value.
        ParseError: The condition names something unknown.
        SemanticsError: The condition or the history names a result with axes.
    """
    pairs = dict(state or program.state)
    if not pairs:
        raise PlanError(
            "the loop has no state; name what a step replaces, as in `state W` in the program, or in "
            'state={"W": "next_W"}'
        )
    computed = {einsum.output.tensor: einsum for einsum in program.einsums}
    for name, following in pairs.items():
        if following not in computed:
            hint = did_you_mean(following, computed, otherwise="it computes")
            raise PlanError(f"the program does not compute {following}, the next value of the state {name}; {hint}")
        if name in computed:
            raise PlanError(f"the program computes the state {name}; a step reads it, and computes {following}")
    condition = None if until is None else parse_condition(until, (*computed, STEP, CHANGED))
    listed = tuple(dict.fromkeys(history))
    steps = LoopProgram(program, pairs, (), listed, condition)
    numbers = tuple(name for name in steps.recorded if name != CHANGED)
    for name in numbers:
        _check_number(name, computed, "the history" if name in listed else f"the condition {until}")
    needed = (*pairs.values(), *numbers)
    outputs = tuple(name for name in computed if name in needed)
    return replace(steps, program=_computing(program, outputs), numbers=numbers)


def _check_number(name: str, computed: Mapping[str, EinSum], reader: str) -> None:
    if name not in computed:
        raise PlanError(f"{reader} names {name}, which the program does not compute; {did_you_mean(name, computed)}")
    labels = computed[name].output.labels
    if labels:
        raise SemanticsError(
            f"{reader} reads {name}, which has the axes {', '.join(labels)} and is no number; aggregate it in the "
            f"program, as in size[] = sum(abs({name}[{', '.join(labels)}]))"
        )


def _computing(program: Program, outputs: tuple[str, ...]) -> Program:
    """The program with other outputs, and the EinSums that these need."""
    return replace(program, einsums=needed_einsums(program.einsums, outputs), outputs=outputs, state=())


def check_next_values(steps: LoopProgram, inputs: Mapping[str, StoredTensor]) -> None:
    """Refuse next values that cannot replace the state.

    Args:
        steps: The steps.
        inputs: What the program reads, and the state.

    Raises:
        ShapeError: A next value has another number of axes, another bound or another dtype.
    """
    graph = bind(steps.program, {name: stored.tensor for name, stored in inputs.items()})
    labels = {einsum.output.tensor: einsum.output.labels for einsum in steps.program.einsums}
    for name, following in steps.state.items():
        _check_next_value(inputs[name].tensor, graph.tensors[following], labels[following])


def _check_next_value(before: Tensor, after: Tensor, labels: tuple[str, ...]) -> None:
    if len(before.axes) != len(after.axes):
        raise ShapeError(
            f"the state {before.name} has {len(before.axes)} axes, and its next value {after.name} has "
            f"{len(after.axes)}; a step replaces it by one of the same shape"
        )
    for label, old, new in zip(labels, before.axes, after.axes, strict=True):
        if old.bound != new.bound:
            raise ShapeError(
                f"the axis {old.name} of the state {before.name} has the bound {old.bound}, and label {label} of its "
                f"next value {after.name} has {new.bound}; a step replaces it by one of the same shape"
            )
    if before.dtype != after.dtype:
        raise ShapeError(
            f"the state {before.name} has dtype {before.dtype}, and its next value {after.name} has {after.dtype}; "
            f"load {before.name} with dtype={after.dtype!r}"
        )
