"""EinDecomp: the partition vectors of a graph that transfer the fewest floats.

M[v, d_Z] of the paper is the table that remains of a vertex when its vectors have been eliminated. This is the same
variable elimination as for plans of one machine, with floats for costs; it is exact even if results are shared. If
tables grow too large, every EinSum gets a short list of vectors.

Source: EinDecomp, sections 8.2 to 8.4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.choice import Choice, reference_tiles, result_tiles
from sparseeinsum.decompose.eindecomp.transfer import TransferModel
from sparseeinsum.decompose.search_tasks import State, total_cost
from sparseeinsum.decompose.short_lists import SearchResult, search_in_lists
from sparseeinsum.language.eingraph import EinGraph, EinSum

Vectors = Mapping[str, Choice]  # by the name of the result, as tiles

TABLE_LIMIT = 20_000_000  # numbers in all tables together


@dataclass(frozen=True, slots=True)
class TransferTask:
    """The vectors of a graph and the floats that they transfer; a `GraphPricing` in floats.

    Attributes:
        model: Counts the floats.
        choices: The allowed vectors of every EinSum, by the name of its result.
    """

    model: TransferModel
    choices: Mapping[str, Sequence[Choice]]

    @property
    def graph(self) -> EinGraph:
        """The EinSums, with the tensors that they read and compute."""
        return self.model.graph

    def narrowed(self, choices: Mapping[str, Sequence[Choice]]) -> "TransferTask":
        """A copy with other vectors."""
        return replace(self, choices=choices)

    def result_state(self, einsum: EinSum, choice: Choice) -> State:
        """The tiles of the result."""
        return result_tiles(einsum, choice)

    def required_state(self, einsum: EinSum, index: int, choice: Choice) -> State:
        """The tiles in which operand `index` is read."""
        return reference_tiles(einsum, einsum.operands[index], choice)

    def own_cost(self, einsum: EinSum, choice: Choice) -> float:
        """Floats that an EinSum transfers, without repartitions."""
        return self.model.moved(einsum, choice).floats

    def reads(self, einsum: EinSum, choice: Choice) -> int:
        """How often operands are read: always once, as no EinSum has passes here."""
        return 1

    def repartition_costs(
        self, tensor: str, before: Sequence[Choice], required: Sequence[tuple[Choice, int]]
    ) -> NDArray[np.float64]:
        """Floats transferred by repartitions: a row for each of `before`, a column for each of `required`."""
        return self.model.repartition_table(tensor, before, [after for after, _ in required])

    def repartition_cost(self, tensor: str, before: Choice, after: Choice, reads: int = 1) -> float:
        """Floats transferred by one repartition."""
        return 0.0 if before == after else float(self.model.repartition_table(tensor, [before], [after])[0, 0])

    def floats(self, vectors: Vectors) -> float:
        """All floats that the graph transfers with these vectors."""
        return total_cost(self, self.graph.einsums, vectors, {})


def search(task: TransferTask, limit: float = TABLE_LIMIT) -> SearchResult:
    """The vectors that transfer the fewest floats, or an approximation if tables would exceed `limit` numbers."""
    return search_in_lists(task, task.graph.einsums, 1, limit)
