"""Memory limits of which so much can be planned with: the process that DuckDB runs in takes the rest."""

import sparseeinsum as se
from sparseeinsum.decompose.memory_footprint import RunMemory


def limit_for(db: se.Database, planned_bytes: float) -> int:
    """The memory_limit that leaves this number of bytes for vectors and aggregation states."""
    return RunMemory(0, threads=1, vector_rows=1, covers_process=not db._engine.is_server).total_bytes_for(
        planned_bytes
    )
