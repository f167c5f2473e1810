"""Plans that keep operands in memory and index them, whether it pays or not."""

import pytest

import sparseeinsum as se
from sparseeinsum.decompose import (
    compressed_access,
    fused_products,
    in_memory_costs,
    indexed_access,
    model,
    repartitions,
)
from sparseeinsum.decompose.cost import Work


def index_wherever_possible(patch: pytest.MonkeyPatch) -> None:
    """Make resident arrays and indexed access free, so that plans use them wherever possible."""
    patch.setattr(indexed_access.ResidentSizes, "keeping", lambda _: Work())
    patch.setattr(model, "indexed", lambda *_: Work())


def compress_wherever_possible(patch: pytest.MonkeyPatch) -> None:
    """Make ordering by row in memory free, even for few rows, so that plans do it wherever possible."""
    patch.setattr(indexed_access.ResidentSizes, "keeping", lambda _: Work())
    patch.setattr(compressed_access, "_LEAST_ROWS", 1)
    patch.setattr(in_memory_costs, "in_rows", lambda *_: Work())
    patch.setattr(in_memory_costs, "in_row_products", lambda *_, **__: Work())


def compressed_steps(plan: se.Plan) -> dict[str, tuple[int, ...]]:
    """The numbers of the operands that are ordered by row, for every result that is computed row by row."""
    steps = plan.data.decomposed.steps
    return {step.einsum.output.tensor: step.cost.compressed for step in steps if step.cost.has_whole_groups}


def indexed_steps(plan: se.Plan) -> dict[str, int]:
    """The number of the resident operand, for every result that is computed by index."""
    steps = plan.data.decomposed.steps
    return {step.einsum.output.tensor: step.indexed for step in steps if step.indexed is not None}


def fuse_wherever_possible(patch: pytest.MonkeyPatch) -> None:
    """Make products of three operands free, even for few rows, so that plans compute EinSums at once if they can."""
    patch.setattr(compressed_access, "_LEAST_ROWS", 1)
    patch.setattr(fused_products.FusedProduct, "seconds", lambda *_: 0.0)


def fused_kernels(plan: se.Plan) -> dict[str, str]:
    """The kernel of every result that a product of three operands computes."""
    steps = plan.data.decomposed.steps
    return {step.einsum.output.tensor: str(step.fused.kernel) for step in steps if step.fused is not None}


def match_wherever_possible(patch: pytest.MonkeyPatch) -> None:
    """Make matching rows free, even few, so that plans match operands of numbers instead of joining them."""
    patch.setattr(compressed_access, "_LEAST_ROWS", 1)
    for work in ("in_matched_rows", "in_matched_values"):
        patch.setattr(in_memory_costs, work, lambda *_: Work())


def matched_results(plan: se.Plan) -> set[str]:
    """The results whose operands are matched row by row."""
    steps = plan.data.decomposed.steps
    return {step.einsum.output.tensor for step in steps if step.cost.is_matched}


def share_arrays_of_any_size(patch: pytest.MonkeyPatch) -> None:
    """Let all threads write even small arrays to one place in memory."""
    patch.setattr(repartitions, "_LEAST_SHARED_BYTES", 1)
