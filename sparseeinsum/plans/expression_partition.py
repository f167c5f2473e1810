"""Plans: cuts expressions of the tensor relational algebra among sites, as programs of EinSums are cut."""

from collections.abc import Mapping

from sparseeinsum.algebra.expression_programs import program_of
from sparseeinsum.algebra.implementation.distributed import DistributionLike, input_distributions
from sparseeinsum.algebra.relational.relational_expressions import Expression
from sparseeinsum.decompose.eindecomp.partition_vectors import check_workers
from sparseeinsum.decompose.places.blocks import BlockPlacement
from sparseeinsum.decompose.places.distribution import Hashed
from sparseeinsum.errors import AlgebraError
from sparseeinsum.language.binding import bind
from sparseeinsum.plans.graph_partition import PartitionSource
from sparseeinsum.plans.partitioned_program import PartitionedProgram


def partition_expressions(
    expressions: Mapping[str, Expression], sites: int, stored: Mapping[str, DistributionLike], rewrite: bool = True
) -> PartitionedProgram:
    """Cut expressions among sites so that these send each other the fewest floats; pieces consist of whole tuples.

    Args:
        expressions: The expressions to compute, by name.
        sites: The number of sites.
        stored: How inputs are distributed, by name, as for `distribute`; others are available in any partition.
        rewrite: Whether other formulas and orders of products may compute several operators together.

    Raises:
        AlgebraError: An operator is no EinSum, or `stored` has a tensor or a distribution that cannot be.
        PlanError: `sites` is no whole number of 1 or more.
    """
    written = program_of(expressions)
    workers = check_workers(sites, "sites")
    blocks = {}
    for name, place in input_distributions(written.inputs, stored).items():
        if isinstance(place, Hashed) and len(place.axes) != 1:
            raise AlgebraError(f"{name} is {place}; give one position, or leave it out, if floats are minimised")
        blocks[name] = BlockPlacement.of_distribution(place, written.tensors[name].shape, workers)
    graph = bind(written.program, written.tensors)
    return PartitionSource(graph, written.statistics, blocks, written.array_axes).partitioned(workers, rewrite)
