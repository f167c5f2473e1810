"""Einstein summations over tables: the optimiser splits every tensor between SQL and dense kernels in the database."""

from sparseeinsum.algebra.building import TensorRelation
from sparseeinsum.arrays import einsum
from sparseeinsum.contraction_paths import ContractionPath, contract_path
from sparseeinsum.database import Database, connect
from sparseeinsum.errors import (
    AlgebraError,
    CatalogueError,
    DataError,
    EngineError,
    PackageError,
    ParseError,
    PlanError,
    SemanticsError,
    ShapeError,
    SparseEinsumError,
    StatisticsError,
)
from sparseeinsum.kernels.duckdb.extension import register_extension
from sparseeinsum.kernels.duckdb.function_texts import register_function_texts
from sparseeinsum.kernels.duckdb.sql_functions import register_sql_functions
from sparseeinsum.language.building import function, program, read_program, tensor
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.expressions import NamedTensor, TensorExpression, bound, index, ones, where
from sparseeinsum.language.matrices import Matrix, matrix, scalar, vector
from sparseeinsum.partitioned import PartitionedProgram
from sparseeinsum.partitioning import partition
from sparseeinsum.plan import Plan
from sparseeinsum.results.results import TensorResult
from sparseeinsum.results.streams import ResultStream
from sparseeinsum.results.targets import Table
from sparseeinsum.rewrite.equivalence.proof import CounterExample, Equivalence, equivalent
from sparseeinsum.sql_requests import answer
from sparseeinsum.version import __version__

__all__ = [
    "AlgebraError",
    "CatalogueError",
    "ContractionPath",
    "CounterExample",
    "DataError",
    "Database",
    "EngineError",
    "Equivalence",
    "Matrix",
    "NamedTensor",
    "PackageError",
    "ParseError",
    "PartitionedProgram",
    "Plan",
    "PlanError",
    "Program",
    "ResultStream",
    "SemanticsError",
    "ShapeError",
    "SparseEinsumError",
    "StatisticsError",
    "Table",
    "TensorExpression",
    "TensorRelation",
    "TensorResult",
    "__version__",
    "bound",
    "connect",
    "contract_path",
    "einsum",
    "equivalent",
    "function",
    "index",
    "matrix",
    "ones",
    "partition",
    "program",
    "read_program",
    "scalar",
    "tensor",
    "vector",
    "where",
]

register_function_texts(__version__)  # first: see there
register_extension(__version__)
register_sql_functions(__version__, answer)
