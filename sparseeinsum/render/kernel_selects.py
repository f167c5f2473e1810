"""Render: the SELECTs of EinSums that kernels compute from operands in memory, in place of a join."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.algebra.operators import Contract
from sparseeinsum.render.compressed_rows import gather_select, row_product_select
from sparseeinsum.render.contract import is_grouped, matched_select
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.fused_product_queries import fused_select
from sparseeinsum.render.gathered_rows import gathered_select
from sparseeinsum.render.matched_rows import matched_value_select
from sparseeinsum.render.sources import SelectSource
from sparseeinsum.render.sparse_matmul import sparse_matmul_select


@dataclass(frozen=True, slots=True)
class KernelSelect:
    """A SELECT; its other attributes are those of its `Block`."""

    select: exp.Select
    is_aggregated: bool = True
    detects_nonfinite: bool = False
    whole: exp.Select | None = None


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
        return KernelSelect(fused_select(relation, sources, dialect), bool(relation.compressed))
    if relation.is_matched:
        select, is_aggregated = matched_select(relation, sources, dialect), is_grouped(relation)
        is_whole = not (is_aggregated or dialect.keeps_residents)
        first, second = sources
        whole = matched_value_select(relation, first, second, dialect) if is_whole else None
        return KernelSelect(select, is_aggregated, relation.detects_nonfinite, whole)
    if not relation.compressed:
        return None
    first, second = sources if relation.compressed[0] == 0 else reversed(sources)
    if relation.is_sparse_matmul:
        return KernelSelect(sparse_matmul_select(relation, first, second))
    if relation.indexed is None:
        return KernelSelect(row_product_select(relation, first, second, dialect))
    if reads_rows:
        return KernelSelect(gathered_select(relation, first, second), False, relation.detects_nonfinite)
    return KernelSelect(gather_select(relation, first, second, dialect))
