"""Statistics: counts of entries at every index of every axis, estimated from a random sample of rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.axis_counts import AxisCounts
from sparseeinsum.statistics.columns import table_by_name, value_of
from sparseeinsum.statistics.executor import Executor
from sparseeinsum.statistics.number_literals import number

_SAMPLED_ROWS = 200_000
_READ_ROWS = 10_000  # of large tables; the time of more is that of all, as rows are decompressed 2,048 at a time
_SEED = 1  # the same sample in every process, so that the same table gives the same plan


@dataclass(frozen=True, slots=True)
class RowSample:
    """The entries in a random sample of the rows of a table.

    Attributes:
        indices: For every axis, the indices of the entries.
        entries: The entries of the whole table.
    """

    indices: tuple[NDArray[np.int64], ...]
    entries: float

    def distinct(self) -> tuple[float, ...]:
        """For every axis, the expected number of its indices that have entries in the whole table."""
        return tuple(distinct_in_all(np.unique(axis, return_counts=True)[1], self.entries) for axis in self.indices)

    def counts(self, shape: Sequence[int]) -> tuple[AxisCounts, ...]:
        """For every axis, the expected entries of the whole table at every index."""
        axes = zip(self.indices, shape, strict=True)
        return tuple(estimated_counts(np.bincount(axis, minlength=bound), self.entries) for axis, bound in axes)


def sample_rows(stored: StoredTensor, rows: int, entries: float, has_row_ids: bool, executor: Executor) -> RowSample:
    """A sample of a table of entries that the database can sample.

    Args:
        stored: The tensor.
        rows: The rows of the table.
        entries: The rows that do not hold the fill.
        has_row_ids: Whether `rowid` numbers the rows, from 0; then the database reads the sampled rows alone.
        executor: Runs the query.

    Raises:
        EngineError: The table cannot be read.
    """
    table = table_by_name(stored, executor.dialect_name)
    indices = _indices(stored, all_rows=entries == rows)
    sample = executor.arrow(indices.from_(table).where(_has_sampled_id(rows))) if has_row_ids else None
    if sample is None or not sample.num_rows:  # as rows that the open transaction has inserted have other numbers
        sample = executor.arrow(indices.from_(_sampled(table, rows)))
    return RowSample(tuple(column.to_numpy() for column in sample.columns), entries)


def _indices(stored: StoredTensor, all_rows: bool) -> exp.Select:
    """A query of the indices of entries, which may be all rows; it lacks a table."""
    keys = [exp.column(key, quoted=True).as_(f"index_{axis}") for axis, key in enumerate(stored.keys)]
    is_entry = exp.NEQ(this=value_of(stored), expression=number(stored.tensor.fill, stored.tensor.dtype))
    return exp.select(*keys) if all_rows else exp.select(*keys).where(is_entry)


def _has_sampled_id(rows: int) -> exp.Expr:
    """Whether a row is in a sample of about the numbers from 0 to `rows`."""
    places = exp.select(
        exp.cast(exp.Mod(this=exp.func("HASH", exp.column("range")), expression=number(rows, "int64")), "bigint")
    )
    return exp.column("rowid").isin(query=places.from_(exp.func("RANGE", number(_READ_ROWS, "int64"))))


def _sampled(table: exp.Table, rows: int) -> exp.Table:
    """A sample of a table of about so many rows."""
    share = exp.Literal.number(f"{min(100.0, 100.0 * _SAMPLED_ROWS / max(rows, 1)):.6f}")
    sample = exp.TableSample(method=exp.var("BERNOULLI"), percent=share, seed=exp.Literal.number(_SEED))
    sampled = table.copy()
    sampled.set("sample", sample)
    return sampled


def estimated_counts(sampled: NDArray[np.int64], entries: float) -> AxisCounts:
    """The expected entries at every index of an axis, from the number of its entries in a sample.

    Entries of a table are expected to have a gamma distribution over the indices, and those of the sample a Poisson
    distribution given these. The mean of the posterior is between the even distribution, if all indices are alike, and
    the sample magnified, if they differ much; the parameters are those that give the mean and the variance of the
    sample (empirical Bayes; Robbins 1956).

    Args:
        sampled: The entries of the sample at every index.
        entries: The entries of the whole table.
    """
    counts = sampled.astype(np.float64)
    total = counts.sum()
    if total == 0:
        even = entries / max(len(counts), 1)
        return AxisCounts(np.full(len(counts), even), np.full(len(counts), min(even, 1.0)))
    mean, variance = counts.mean(), counts.var()
    excess = variance - mean
    # With shape k of the gamma distribution, the variance of a count in the sample is mean + mean^2 / k.
    expected = (counts + mean**2 / excess) if excess > 0 else np.ones(len(counts))
    expected *= entries / expected.sum()
    distinct = min(max(distinct_in_all(sampled, entries), 1.0), entries, len(counts))
    is_seen = counts > 0
    seen = int(is_seen.sum())
    unseen = max(distinct - seen, 0.0) / max(len(counts) - seen, 1)
    return AxisCounts(expected, np.where(is_seen, 1.0, min(unseen, 1.0)))


def distinct_in_all(sampled: NDArray[np.int64], entries: float) -> float:
    """The expected number of indices that have one of all `entries`, from the entries of a sample at every index.

    Source: P. J. Haas and L. Stokes, "Estimating the number of classes in a finite population", JASA 1998: the
    estimator Duj1, n d / (n - f1 + f1 n / N), which PostgreSQL's ANALYZE uses, too.
    """
    total, seen, once = float(sampled.sum()), float((sampled > 0).sum()), float((sampled == 1).sum())
    return total * seen / (total - once + once * total / max(entries, total, 1.0)) if total else 0.0
