"""Decompose: settles the choices of EinSums all of whose neighbours have a single one, before plans are searched.

The neighbours of an EinSum are those that compute its operands, and those that read its result. If these have no
choice, its cheapest one depends on nothing else. So it is for most EinSums of networks of small tensors.
"""

from collections.abc import Mapping, Sequence

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.elimination import cheapest_plans
from sparseeinsum.decompose.search_tasks import Candidate, Pricing, State, candidate_of, reading_cost
from sparseeinsum.language.eingraph import EinSum


def search_unsettled(task: Pricing[EinSum], einsums: Sequence[EinSum], limit: float) -> Candidate | None:
    """The cheapest plan, found among the choices that are not settled; None if the tables would exceed a limit.

    Args:
        task: The choices and their costs.
        einsums: All EinSums, in topological order.
        limit: The most numbers that all tables of the elimination may have.
    """
    choices = _with_settled(task, einsums)
    unsettled = {name for name, left in choices.items() if len(left) > 1}
    part = [
        einsum
        for einsum in einsums
        if einsum.output.tensor in unsettled or any(operand.tensor in unsettled for operand in einsum.operands)
    ]
    if part:
        inside = {einsum.output.tensor for einsum in part}
        read = {operand.tensor for einsum in part for operand in einsum.operands} - inside
        states = {
            einsum.output.tensor: task.result_state(einsum, choices[einsum.output.tensor][0])
            for einsum in einsums
            if einsum.output.tensor in read
        }
        candidates = cheapest_plans(task.narrowed(choices), part, states, 1, limit)
        if candidates is None:
            return None
        choices |= {name: (choice,) for name, choice in candidates[0].choices}
    return candidate_of(task, einsums, {name: choice for name, (choice,) in choices.items()}, {})


def _with_settled(task: Pricing[EinSum], einsums: Sequence[EinSum]) -> dict[str, Sequence[Choice]]:
    """The choices of all EinSums, of which only the cheapest is left where those of all neighbours are single."""
    choices = dict(task.choices)
    producers = {einsum.output.tensor: einsum for einsum in einsums}
    read: dict[str, list[tuple[EinSum, int]]] = {name: [] for name in producers}
    for einsum in einsums:
        for index, operand in enumerate(einsum.operands):
            if operand.tensor in read:
                read[operand.tensor].append((einsum, index))
    for name, einsum in producers.items():
        if len(choices[name]) == 1:
            continue
        computed = [operand.tensor for operand in einsum.operands if operand.tensor in producers]
        neighbours = [*computed, *[reader.output.tensor for reader, _ in read[name]]]
        if all(len(choices[neighbour]) == 1 for neighbour in neighbours):
            states = {operand: task.result_state(producers[operand], choices[operand][0]) for operand in computed}
            readers = [(reader, index, choices[reader.output.tensor][0]) for reader, index in read[name]]
            required = [
                (task.required_state(reader, index, choice), task.reads(reader, choice))
                for reader, index, choice in readers
            ]
            choices[name] = (_cheapest(task, einsum, choices[name], states, required),)
    return choices


def _cheapest(
    task: Pricing[EinSum],
    einsum: EinSum,
    choices: Sequence[Choice],
    states: Mapping[str, State],
    required: Sequence[tuple[State, int]],
) -> Choice:
    """The cheapest of the choices of an EinSum.

    Args:
        task: The choices and their costs.
        einsum: The EinSum.
        choices: Its choices.
        states: The states of those operands that are computed.
        required: The states in which its result is read, each with how often.
    """

    def cost(choice: Choice) -> tuple[float, State, Choice]:
        state = task.result_state(einsum, choice)
        moving = [task.repartition_cost(einsum.output.tensor, state, after, reads) for after, reads in required]
        return task.own_cost(einsum, choice) + reading_cost(task, einsum, choice, states) + sum(moving), state, choice

    return min(choices, key=cost)
