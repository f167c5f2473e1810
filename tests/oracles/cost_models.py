"""Cost models of small programs, with constants that tell the terms of a formula apart."""

from collections.abc import Mapping

from evaluated_programs import evaluated

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.cost import Accounting, CostConstants, DistributedAccounting, EmbeddedAccounting
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.statistics.estimate import Statistics, estimate

# Different primes tell the terms of a formula apart.
CONSTANTS = CostConstants(
    transfer_seconds_per_byte=2,
    kernel_seconds_per_operation=3,
    matrix_seconds_per_operation=5,
    expression_seconds_per_operation=11,
    fixed_seconds_per_tuple=7,
    hashing_seconds_per_tuple=13,
    fixed_seconds_per_operator=17,
)
DISTRIBUTED, EMBEDDED = DistributedAccounting(), EmbeddedAccounting()

PRODUCT = "C[i, k] = sum(A[i, j] * B[j, k])"
OPERANDS = {"A": Statistics(500, (100, 200), (100, 200)), "B": Statistics(800, (160, 50), (200, 50))}


def model_of(text: str, inputs: Mapping[str, Statistics], accounting: Accounting = DISTRIBUTED) -> CostModel:
    """The cost model of a program on inputs with these statistics."""
    graph, evaluations = evaluated(text, inputs)
    statistics = estimate(graph, inputs, evaluations)
    return CostModel(graph, statistics, evaluations, CONSTANTS, accounting)


def promoting(einsum: EinSum, labels: str) -> Choice:
    """The choice that promotes these labels."""
    return tuple(int(label in labels) for label in einsum.labels)
