"""Operators: every scan of programs, in one record each."""

import numpy as np

from sparseeinsum.operators.records import Scan

_RECORDS = (
    Scan(name="cumsum", aggregate="sum", description="cumulative sum", numpy=np.cumsum),
    Scan(name="cumprod", aggregate="prod", description="cumulative product", numpy=np.cumprod),
    Scan(name="cummax", aggregate="max", description="maximum so far; NaN wins", numpy=np.maximum.accumulate),
    Scan(name="cummin", aggregate="min", description="minimum so far; NaN wins", numpy=np.minimum.accumulate),
    Scan(
        name="logcumsumexp",
        aggregate="logsumexp",
        description="logarithm of the cumulative sum of exponentials, without overflow",
        numpy=np.logaddexp.accumulate,
    ),
)

SCANS: dict[str, Scan] = {record.name: record for record in _RECORDS}
