"""Operators: scans, which are cumulative aggregates along a label; one record each."""

import numpy as np

from sparseeinsum.operators.records import ScanFunction

_RECORDS = (
    ScanFunction(name="cumsum", aggregate="sum", description="cumulative sum", numpy=np.cumsum),
    ScanFunction(name="cumprod", aggregate="prod", description="cumulative product", numpy=np.cumprod),
    ScanFunction(name="cummax", aggregate="max", description="maximum so far; NaN wins", numpy=np.maximum.accumulate),
    ScanFunction(name="cummin", aggregate="min", description="minimum so far; NaN wins", numpy=np.minimum.accumulate),
    ScanFunction(
        name="logcumsumexp",
        aggregate="logsumexp",
        description="logarithm of the cumulative sum of exponentials, without overflow",
        numpy=np.logaddexp.accumulate,
    ),
)

SCANS: dict[str, ScanFunction] = {record.name: record for record in _RECORDS}
