"""Einstein summations over tables: the optimiser splits every tensor between SQL and dense kernels in the database."""

from sparseeinsum.arrays import einsum
from sparseeinsum.database import Database, connect, program
from sparseeinsum.engines.results import TensorResult
from sparseeinsum.errors import (
    CatalogueError,
    DataError,
    EngineError,
    ParseError,
    PlanError,
    SemanticsError,
    ShapeError,
    SparseEinsumError,
    StatisticsError,
)
from sparseeinsum.kernels.duckdb_extension import register_extension
from sparseeinsum.language.eingraph import Program
from sparseeinsum.plan import Plan

__version__ = "0.1.0"

__all__ = [
    "CatalogueError",
    "DataError",
    "Database",
    "EngineError",
    "ParseError",
    "Plan",
    "PlanError",
    "Program",
    "SemanticsError",
    "ShapeError",
    "SparseEinsumError",
    "StatisticsError",
    "TensorResult",
    "__version__",
    "connect",
    "einsum",
    "program",
]

register_extension(__version__)
