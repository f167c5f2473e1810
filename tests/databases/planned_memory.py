"""Memory limits of which so much can be planned with: the process that DuckDB runs in takes the rest."""

import sparseeinsum as se
from sparseeinsum.decompose.memory_footprint import RunMemory


def limit_for(db: se.Database, planned_bytes: float) -> int:
    """The memory_limit that leaves this number of bytes for vectors and aggregation states."""
    covers_process = db._engine.memory_in_use() is not None
    return RunMemory(0, threads=1, vector_rows=1, covers_process=covers_process).total_bytes_for(planned_bytes)
