"""Decompose: choices under which one kernel computes two EinSums at once.

Searches price EinSums one by one, and miss such a plan where other choices of both are cheaper alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.decomposed_graph import DecomposedGraph, price_choices
from sparseeinsum.decompose.fused_products import PricedEinSum, common_semiring, fused_product, labels_in_reader
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.tensors import DEMOTED, Decomposition


def with_fused_products(
    plan: DecomposedGraph,
    model: CostModel,
    allowed: Mapping[str, Sequence[Choice]],
    layouts: Mapping[str, Decomposition],
) -> DecomposedGraph:
    """A plan with other choices for those pairs of EinSums that one kernel computes at less cost, one pair at a time.

    Args:
        plan: The plan, for one machine.
        model: The cost model that priced it.
        allowed: The choices that every EinSum may have, by the name of its result.
        layouts: Decompositions in which outputs are delivered; an output without one is delivered as it is computed.
    """
    for pair in _reading_pairs(model) if model.resident_bytes > 0 else ():
        for choices in pair.choices():
            is_allowed = all(choice in allowed[name] for name, choice in choices.items())
            is_new = not choices.items() <= plan.choices.items()
            if is_new and is_allowed and pair.is_fused(choices):
                other = price_choices(model, {**plan.choices, **choices}, plan.inputs, layouts)
                if other.impossible is None and other.cost < plan.cost:
                    plan = other
    return plan


def _reading_pairs(model: CostModel) -> Iterator["_ReadingPair"]:
    """The pairs of EinSums of two operands each, of which the second alone reads the result of the first."""
    products = {einsum.output.tensor: einsum for einsum in model.graph.einsums if len(einsum.operands) == 2}
    read_once = model.graph.read_once()
    for reader in products.values():
        for index, operand in enumerate(reader.operands):
            if operand.tensor in products and operand.tensor in read_once:
                yield _ReadingPair(model, products[operand.tensor], reader, operand, reader.operands[1 - index])


@dataclass(frozen=True, slots=True)
class _ReadingPair:
    """Two EinSums, the second of which reads the result of the first.

    Attributes:
        model: The cost model.
        producer: The first one.
        reader: The second one.
        read: The operand of the second one that the first one computes.
        other: Its other operand.
    """

    model: CostModel
    producer: EinSum
    reader: EinSum
    read: Reference
    other: Reference

    def choices(self) -> Iterator[dict[str, Choice]]:
        """Choices of both under which one operand is read as numbers and the others as arrays, or all as numbers."""
        if common_semiring(self.producer, self.reader) is None:
            return
        name_of = labels_in_reader(self.producer, self.read.labels, self.reader.labels)
        names = [operand.tensor for operand in (*self.producer.operands, self.other)]
        labels = [{name_of[label] for label in operand.labels} for operand in self.producer.operands]
        labels.append(set(self.other.labels))
        may_be_of_numbers = [self.model.may_be_of_numbers(name) for name in names]
        for index, entries in enumerate(labels):
            first, second = (array - entries for position, array in enumerate(labels) if position != index)
            if may_be_of_numbers[index] and first and first == second:
                yield self._promoting(entries, name_of)
        if all(may_be_of_numbers):
            yield self._promoting(set().union(*labels), name_of)

    def is_fused(self, choices: Mapping[str, Choice]) -> bool:
        """Whether a kernel computes both under these choices, in the memory that there is."""
        reader, producer = (self._priced(einsum, choices) for einsum in (self.reader, self.producer))
        return fused_product(self.model, reader, producer) is not None

    def _priced(self, einsum: EinSum, choices: Mapping[str, Choice]) -> PricedEinSum:
        choice = choices[einsum.output.tensor]
        return PricedEinSum(einsum, choice, self.model.vertex_cost(einsum, choice))

    def _promoting(self, promoted: set[str], name_of: Mapping[str, str]) -> dict[str, Choice]:
        """The choices that promote labels; `name_of` has those of the producer as the reader calls them."""
        return {
            self.producer.output.tensor: _choice([name_of[label] for label in self.producer.labels], promoted),
            self.reader.output.tensor: _choice(self.reader.labels, promoted),
        }


def _choice(labels: Sequence[str], promoted: set[str]) -> Choice:
    """The choice that promotes those of some labels."""
    return tuple([1 if label in promoted else DEMOTED for label in labels])
