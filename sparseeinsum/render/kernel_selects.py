"""Render: the SELECTs of EinSums that kernels compute from operands in memory, in place of a join."""

from collections.abc import Sequence
from dataclasses import replace

from sparseeinsum.algebra.operators import Contract
from sparseeinsum.render.blocks import KernelSelect
from sparseeinsum.render.compressed_rows import gather_select, row_product_select
from sparseeinsum.render.contract import is_grouped, matched_select
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.fused_product_queries import fused_select
from sparseeinsum.render.gathered_rows import gathered_select
from sparseeinsum.render.matched_rows import value_of_matches
from sparseeinsum.render.sources import SelectSource
from sparseeinsum.render.sparse_matmul import sparse_matmul_select


def kernel_select_of(
    relation: Contract, sources: Sequence[SelectSource], dialect: Dialect, reads_rows: bool
) -> KernelSelect | None:
    """The SELECT of an EinSum that reads operands in memory; None if it joins tuples.

    Args:
        relation: The EinSum.
        sources: Where its operands are read.
        dialect: The dialect of the engine.
        reads_rows: As `gathered_rows.reads_rows` tells.
    """
    if relation.is_fused:
        return replace(fused_select(relation, sources, dialect), is_aggregated=bool(relation.compressed))
    if relation.is_matched:
        select, is_aggregated = matched_select(relation, sources, dialect), is_grouped(relation)
        is_whole = not (is_aggregated or dialect.keeps_residents)
        first, second = sources
        whole = value_of_matches(relation, first, second, dialect) if is_whole else None
        return KernelSelect(select, is_aggregated, relation.detects_nonfinite, whole=whole)
    if not relation.compressed:
        return None
    first, second = sources if relation.compressed[0] == 0 else reversed(sources)
    if relation.is_sparse_matmul:
        return KernelSelect(sparse_matmul_select(relation, first, second))
    if relation.indexed is None:
        return row_product_select(relation, first, second, dialect)
    if reads_rows:
        return KernelSelect(gathered_select(relation, first, second), False, relation.detects_nonfinite)
    return gather_select(relation, first, second, dialect)
