"""Decompose: the choices of every EinSum that a search considers, as many as pay for the time to price them.

A graph of few choices gets all of them. Otherwise, the search may take a share of the expected run. EinSums that are
expected to take long get more choices; those that hardly take longer than starting an operator get a few: no label
promoted, all labels promoted, or the labels by which an operand is already divided. Where even to price these takes
longer than they can save, as in networks of small tensors, no label is promoted. The limit is a number of choices
instead of seconds, so that the same graph gives the same plan. On a cluster, a run is expected to send all operands to
all machines, since that is what other choices may save.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sparseeinsum.decompose.choice import Choice, promoted_tiles, result_tiles
from sparseeinsum.decompose.choices import MOST_LABELS, LabelConstraints, fixed_tiles
from sparseeinsum.decompose.cost_bounds import NO_SECONDS
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinSum, write_einsum
from sparseeinsum.language.tensors import DEMOTED, MOST_ARRAY_AXES, Decomposition

_ALL_CHOICES = 64  # of all EinSums together, from which on a search may look at fewer
_MOST_SHARE = 0.1  # of the expected run, that may be spent to price choices
_SECONDS_OF_CHOICE = 2e-4
_LEAST_GAIN = 1e-4  # seconds above the time to start an operator; where less can be gained, a few choices are enough

_Rule = Callable[[EinSum, Choice], bool]


def any_choice(_: EinSum, __: Choice) -> bool:
    """The rule of an optimizer that considers every choice."""
    return True


def no_sending(_: EinSum, __: Choice) -> float:
    """The seconds to send operands to where they are read, on one machine."""
    return 0.0


@dataclass(frozen=True)  # no slots: what is allowed is found once
class SearchSpace:
    """The choices of all EinSums of a graph.

    Attributes:
        model: The cost model; choices that exceed its memory limit are left out.
        pinned: For some results, exactly the labels to promote in their EinSum, with their tiles.
        only: Whether a choice is considered; the restriction of a baseline.
        tiles: For every result, the tiles greater than 1 that each label may have.
        cut: For some results, the labels that are divided among workers, with the tile of one worker.
        stored: Decompositions in which inputs are stored, for a search that is limited; None for all choices.
        sending: The most seconds that machines take to send each other what a choice reads and computes.
    """

    model: CostModel
    pinned: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    only: _Rule = any_choice
    tiles: Mapping[str, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)
    cut: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    stored: Mapping[str, Decomposition] | None = None
    sending: Callable[[EinSum, Choice], float] = no_sending

    def allowed(self) -> dict[str, tuple[Choice, ...]]:
        """The choices to consider for every EinSum, by the name of its result: those within the memory limit.

        Raises:
            PlanError: An EinSum has no such choice.
        """
        return self._allowed

    @cached_property
    def _allowed(self) -> dict[str, tuple[Choice, ...]]:
        considered = self.considered()
        return {space.name: space.within_memory(considered[space.name]) for space in self._spaces()}

    def considered(self) -> dict[str, list[Choice]]:
        """The choices that are priced, by the name of the result."""
        choices = self.all()
        if self.stored is None or sum(map(len, choices.values())) <= _ALL_CHOICES:
            return choices
        return _worth_pricing(self._spaces(), choices, self.stored)

    def all(self) -> dict[str, list[Choice]]:
        """All choices that satisfy the constraints, by the name of the result."""
        return {space.name: space.all_choices() for space in self._spaces()}

    def _spaces(self) -> list["_ChoiceSpace"]:
        return [
            _ChoiceSpace(
                self.model,
                einsum,
                LabelConstraints(self.pinned.get(name), self.tiles.get(name, {}), self.cut.get(name, {})),
                self.only,
                self.sending,
            )
            for name, einsum in ((einsum.output.tensor, einsum) for einsum in self.model.graph.einsums)
        ]


@dataclass(frozen=True, slots=True)
class _ChoiceSpace:
    """The choices of one EinSum.

    Attributes:
        model: The cost model.
        einsum: The EinSum.
        constraints: Constraints on its choices.
        only: Whether a choice is considered.
        sending: The most seconds that machines take to send each other what a choice reads and computes.
    """

    model: CostModel
    einsum: EinSum
    constraints: LabelConstraints
    only: _Rule
    sending: Callable[[EinSum, Choice], float]

    @property
    def name(self) -> str:
        """The name of the result."""
        return self.einsum.output.tensor

    @property
    def bounds(self) -> dict[str, int]:
        """The bounds of all labels."""
        return {label: self.model.graph.bound_of(self.einsum, label) for label in self.einsum.labels}

    def all_choices(self, most_labels: int = MOST_LABELS) -> list[Choice]:
        """The choices that satisfy the constraints, whether or not they keep to the memory limit."""
        return self._considered(self.constraints, most_labels)

    def _considered(self, constraints: LabelConstraints, most_labels: int = MOST_LABELS) -> list[Choice]:
        choices = constraints.choices(self.einsum, self.bounds, most_labels)
        if self.only is any_choice:
            return list(choices)
        return [choice for choice in choices if self.only(self.einsum, choice)]

    def seconds(self, choice: Choice) -> float:
        """Expected seconds of a choice."""
        return self.model.vertex_cost(self.einsum, choice).seconds + self.sending(self.einsum, choice)

    def few_choices(self, choices: list[Choice], tiles_of: Mapping[str, Choice]) -> list[Choice]:
        """A few of the choices: no label promoted, all of them, or those of one operand.

        Args:
            choices: All choices.
            tiles_of: For some operands, the tiles that they probably have.
        """
        simple = dict.fromkeys(self._simple_choices(tiles_of))
        return [choice for choice in choices if choice in simple] or choices

    def is_surely_cheapest(self, choice: Choice, tiles_of: Mapping[str, Choice]) -> bool:
        """Whether a choice takes no longer than any operator, and reads operands as they probably are.

        An output may be delivered in another layout than it is computed in, so that its choices are compared.
        """
        if self.name in self.model.graph.outputs or any(
            tiles_of.get(operand.tensor) != self.model.operand_tiles(self.einsum, index, choice)
            for index, operand in enumerate(self.einsum.operands)
        ):
            return False
        return self.seconds(choice) < self.model.least_operator_seconds + NO_SECONDS

    def most_gain(self, stored: Mapping[str, Decomposition]) -> float:
        """The most seconds that another choice can take less than single arrays do, where all that others read is.

        Args:
            stored: Decompositions in which inputs are stored.
        """
        model, whole = self.model, self.whole
        cost = model.vertex_cost(self.einsum, whole)
        if not cost.is_within_memory or cost.passes is not None:
            return math.inf
        seconds, least = self.seconds(whole), model.least_operator_seconds
        for index, operand in enumerate(self.einsum.operands):
            before = stored.get(operand.tensor)
            if before is not None and before.promoted:
                after = model.operand_tiles(self.einsum, index, whole)
                seconds += model.repartitions.seconds(operand.tensor, before.tiles, after, 1)
                if model.statistics[operand.tensor].is_dense:  # to read its keys takes a join or a repartition
                    least = model.constants.fixed_seconds_per_operator
        return seconds - least

    def most_slicing(self, single: Collection[str]) -> float:
        """The seconds to read all operands that are single arrays in numbers."""
        slicing = self.model.repartitions.seconds
        shapes = {operand.tensor: len(operand.labels) for operand in self.einsum.operands if operand.tensor in single}
        return sum([slicing(name, (DEMOTED,) * axes, (1,) * axes, 1) for name, axes in shapes.items()])

    @property
    def whole(self) -> Choice:
        """The choice of single arrays."""
        return (DEMOTED,) * len(self.einsum.labels)

    def _simple_choices(self, tiles_of: Mapping[str, Choice]) -> Iterator[Choice]:
        labels, fixed = self.einsum.labels, fixed_tiles(self.einsum)
        for tile in (DEMOTED, 1):
            yield tuple([fixed.get(label, tile) for label in labels])
        for operand in self.einsum.operands:
            if operand.tensor in tiles_of:
                tiles = dict(zip(operand.labels, tiles_of[operand.tensor], strict=True)) | fixed
                yield tuple([tiles.get(label, DEMOTED) for label in labels])

    def within_memory(self, choices: list[Choice]) -> tuple[Choice, ...]:
        """Those of the choices that keep to the memory limit; with smaller tiles where they may be cheaper.

        Raises:
            PlanError: There is none.
        """

        def is_fitting(choice: Choice) -> bool:
            return self.model.vertex_cost(self.einsum, choice).is_within_memory

        fitting = tuple(filter(is_fitting, choices))
        if choices:
            cheapest = min(choices, key=lambda choice: self.model.single_pass_seconds(self.einsum, choice))
            # The cheapest choice exceeds the memory limit or needs passes, so smaller tiles may be cheaper.
            if not is_fitting(cheapest) or self.model.vertex_cost(self.einsum, cheapest).passes is not None:
                choices = self._considered(self.constraints.with_smaller(self.bounds))
                fitting = tuple(filter(is_fitting, choices))
        if not fitting:
            raise PlanError(_no_choice_message(self.model, self.einsum, choices))
        return fitting


def _in_single_arrays(
    spaces: list[_ChoiceSpace], choices: Mapping[str, list[Choice]], stored: Mapping[str, Decomposition]
) -> frozenset[str]:
    """All results but outputs, if to price other choices takes longer than these can save over single arrays.

    Args:
        spaces: The EinSums, in topological order.
        choices: All choices of every EinSum.
        stored: Decompositions in which inputs are stored.
    """
    tiles_of = {name: decomposition.tiles for name, decomposition in stored.items()}
    inner = [space for space in spaces if space.name not in space.model.graph.outputs]
    few = {space.name: space.few_choices(choices[space.name], tiles_of) for space in inner}
    seconds = _SECONDS_OF_CHOICE * sum([len(of_result) - 1 for of_result in few.values()])
    for space in spaces:
        if space.name not in few:
            seconds -= space.most_slicing(few)
        else:
            seconds -= space.most_gain(stored) if space.whole in few[space.name] else math.inf
        if seconds < 0:
            return frozenset()
    return frozenset(few)


def _worth_pricing(
    spaces: list[_ChoiceSpace], choices: Mapping[str, list[Choice]], stored: Mapping[str, Decomposition]
) -> dict[str, list[Choice]]:
    """As many of the choices as pay for the time to price them, of EinSums that can gain most first.

    Args:
        spaces: The EinSums, in topological order.
        choices: All choices of every EinSum.
        stored: Decompositions in which inputs are stored.
    """
    tiles_of = {name: decomposition.tiles for name, decomposition in stored.items()}
    single = _in_single_arrays(spaces, choices, stored)
    priced: dict[str, list[Choice]] = {}
    seconds: dict[str, float] = {}
    for space in spaces:
        few = [space.whole] if space.name in single else space.few_choices(choices[space.name], tiles_of)
        best = next((choice for choice in few if space.is_surely_cheapest(choice, tiles_of)), None)
        priced[space.name] = few if best is None else [best]
        seconds[space.name], cheapest = min((space.seconds(choice), choice) for choice in priced[space.name])
        tiles_of[space.name] = result_tiles(space.einsum, cheapest)
    most = max(_ALL_CHOICES, int(_MOST_SHARE * sum(seconds.values()) / _SECONDS_OF_CHOICE))
    remaining = most - sum(map(len, priced.values()))
    for space in sorted(spaces, key=lambda space: -seconds[space.name]):
        gain = seconds[space.name] - space.model.least_operator_seconds
        if gain < _LEAST_GAIN or remaining < 1:
            break
        more = choices[space.name]
        if len(more) > remaining:
            more = space.all_choices(most_labels=min(int(math.log2(remaining)), MOST_LABELS - 1))
        before = len(priced[space.name])
        priced[space.name] = list(dict.fromkeys((*priced[space.name], *more)))
        remaining -= len(priced[space.name]) - before
    return priced


def _no_choice_message(model: CostModel, einsum: EinSum, candidates: list[Choice]) -> str:
    if not candidates:
        name = einsum.output.tensor
        if len(einsum.labels) > MOST_ARRAY_AXES:
            reason = f"it has {len(einsum.labels)} labels, and arrays have at most {MOST_ARRAY_AXES} axes"
            return f"no decomposition of {name} that the chosen optimizer allows is possible: {reason}"
        return f"no decomposition of {name} satisfies both the labels promoted by hand and the chosen optimizer"
    least = min(candidates, key=lambda choice: model.needed_bytes(einsum, choice))
    needed, limit = model.memory.total_bytes_for(model.needed_bytes(einsum, least)), model.memory.total_bytes
    written = write_einsum(einsum, promoted_tiles(einsum, least))
    return (
        f"{written} needs a memory_limit of at least {needed:,} bytes, more than the {limit:,} given, and every other "
        f"decomposition of {einsum.output.tensor} allowed here needs as much, in any number of passes; "
        "raise memory_limit or promote more labels"
    )
