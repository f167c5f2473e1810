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


def sample_rows(stored: StoredTensor, rows: int, entries: float, executor: Executor) -> RowSample:
    """A sample of a table of entries that the database can sample.

    Args:
        stored: The tensor.
        rows: The rows of the table.
        entries: The rows that do not hold the fill.
        executor: Runs the query.

    Raises:
        EngineError: The table cannot be read.
    """
    query = _sample_query(stored, min(100.0, 100.0 * _SAMPLED_ROWS / max(rows, 1)), executor.dialect_name)
    sample = executor.arrow(query)
    return RowSample(tuple(column.to_numpy() for column in sample.columns), entries)


def _sample_query(stored: StoredTensor, percent: float, dialect: str) -> exp.Select:
    """A query of the indices of the entries in a sample of rows."""
    table = table_by_name(stored, dialect)
    share = exp.Literal.number(f"{percent:.6f}")
    table.set("sample", exp.TableSample(method=exp.var("BERNOULLI"), percent=share, seed=exp.Literal.number(_SEED)))
    keys = [exp.column(key, quoted=True).as_(f"index_{axis}") for axis, key in enumerate(stored.keys)]
    is_entry = exp.NEQ(this=value_of(stored), expression=number(stored.tensor.fill, stored.tensor.dtype))
    return exp.select(*keys).from_(table).where(is_entry)


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
