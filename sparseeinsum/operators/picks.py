"""Operators: picks, which take the value at one index of a label; one record each."""

from sparseeinsum.operators.records import Pick

_RECORDS = (
    Pick(name="first", position=0, description="value at the first index"),
    Pick(name="last", position=-1, description="value at the last index"),
)

PICKS: dict[str, Pick] = {record.name: record for record in _RECORDS}
