"""Einstein summations over tables: the optimiser splits every tensor between SQL and dense kernels in the database.

The import registers the array functions with DuckDB. Public names are imported when they are first used, to save time.
"""

import importlib
from typing import TYPE_CHECKING

from sparseeinsum.kernels.duckdb.extension import register_extension
from sparseeinsum.kernels.duckdb.function_texts import register_function_texts
from sparseeinsum.kernels.duckdb.sql_functions import register_sql_functions
from sparseeinsum.version import __version__

if TYPE_CHECKING:
    from sparseeinsum.api.arrays import einsum
    from sparseeinsum.api.backend_functions import tensordot, transpose
    from sparseeinsum.api.circuits import Circuit, read_qasm
    from sparseeinsum.api.contraction_expressions import ContractionExpression, contract, contract_expression
    from sparseeinsum.api.contraction_paths import ContractionPath, contract_path
    from sparseeinsum.api.database import Database
    from sparseeinsum.api.iterations import IterationResult
    from sparseeinsum.api.opening import connect
    from sparseeinsum.api.plans import DetachedPlan, Plan
    from sparseeinsum.api.prepared_programs import PreparedProgram
    from sparseeinsum.api.tensor_relations import TensorRelation
    from sparseeinsum.errors import (
        AlgebraError,
        ArgumentError,
        CatalogueError,
        DataError,
        EngineError,
        KernelsError,
        OutdatedPlanError,
        PackageError,
        ParseError,
        PlanError,
        ResultSizeError,
        RightsError,
        SemanticsError,
        ShapeError,
        SparseEinsumError,
        StatisticsError,
        StepError,
    )
    from sparseeinsum.kernels.duckdb.devices import get_device, set_device
    from sparseeinsum.language.aggregate_registration import aggregate
    from sparseeinsum.language.derivatives.derived_programs import gradient, jvp
    from sparseeinsum.language.eingraph import Program
    from sparseeinsum.language.matrices import Matrix, matrix, scalar, vector
    from sparseeinsum.language.programs import function, program, read_program, tensor
    from sparseeinsum.language.python_expressions import NamedTensor, TensorExpression, bound, index, ones, where
    from sparseeinsum.language.python_random_numbers import bernoulli, normal, uniform
    from sparseeinsum.models.networks.network_program import Network, NetworkInput
    from sparseeinsum.models.networks.onnx_files import read_onnx
    from sparseeinsum.plans.partitioned_program import PartitionedProgram
    from sparseeinsum.plans.program_partition import partition
    from sparseeinsum.results.output_targets import Table
    from sparseeinsum.results.results import TensorResult
    from sparseeinsum.results.streams import ResultStream
    from sparseeinsum.rewrite.equivalence.proof import CounterExample, Equivalence, equivalent

_MODULES = {
    "api.tensor_relations": ("TensorRelation",),
    "api.backend_functions": ("tensordot", "transpose"),
    "api.arrays": ("einsum",),
    "api.circuits": ("Circuit", "read_qasm"),
    "api.contraction_expressions": ("ContractionExpression", "contract", "contract_expression"),
    "api.contraction_paths": ("ContractionPath", "contract_path"),
    "api.database": ("Database",),
    "api.opening": ("connect",),
    "errors": (
        *("AlgebraError", "ArgumentError", "CatalogueError", "DataError", "EngineError", "KernelsError"),
        *("OutdatedPlanError", "PackageError", "ParseError", "PlanError", "ResultSizeError", "RightsError"),
        *("SemanticsError", "ShapeError"),
        *("SparseEinsumError", "StatisticsError", "StepError"),
    ),
    "kernels.duckdb.devices": ("get_device", "set_device"),
    "language.programs": ("function", "program", "read_program", "tensor"),
    "language.eingraph": ("Program",),
    "language.derivatives.derived_programs": ("gradient", "jvp"),
    "language.python_expressions": ("NamedTensor", "TensorExpression", "bound", "index", "ones", "where"),
    "language.python_random_numbers": ("bernoulli", "normal", "uniform"),
    "language.matrices": ("Matrix", "matrix", "scalar", "vector"),
    "language.aggregate_registration": ("aggregate",),
    "models.networks.network_program": ("Network", "NetworkInput"),
    "models.networks.onnx_files": ("read_onnx",),
    "plans.partitioned_program": ("PartitionedProgram",),
    "plans.program_partition": ("partition",),
    "api.iterations": ("IterationResult",),
    "api.plans": ("DetachedPlan", "Plan"),
    "api.prepared_programs": ("PreparedProgram",),
    "results.results": ("TensorResult",),
    "results.streams": ("ResultStream",),
    "results.output_targets": ("Table",),
    "rewrite.equivalence.proof": ("CounterExample", "Equivalence", "equivalent"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AlgebraError",
    "ArgumentError",
    "CatalogueError",
    "Circuit",
    "ContractionExpression",
    "ContractionPath",
    "CounterExample",
    "DataError",
    "Database",
    "DetachedPlan",
    "EngineError",
    "Equivalence",
    "IterationResult",
    "KernelsError",
    "Matrix",
    "NamedTensor",
    "Network",
    "NetworkInput",
    "OutdatedPlanError",
    "PackageError",
    "ParseError",
    "PartitionedProgram",
    "Plan",
    "PlanError",
    "PreparedProgram",
    "Program",
    "ResultSizeError",
    "ResultStream",
    "RightsError",
    "SemanticsError",
    "ShapeError",
    "SparseEinsumError",
    "StatisticsError",
    "StepError",
    "Table",
    "TensorExpression",
    "TensorRelation",
    "TensorResult",
    "__version__",
    "aggregate",
    "bernoulli",
    "bound",
    "connect",
    "contract",
    "contract_expression",
    "contract_path",
    "einsum",
    "equivalent",
    "function",
    "get_device",
    "gradient",
    "index",
    "jvp",
    "matrix",
    "normal",
    "ones",
    "partition",
    "program",
    "read_onnx",
    "read_program",
    "read_qasm",
    "scalar",
    "set_device",
    "tensor",
    "tensordot",
    "transpose",
    "uniform",
    "vector",
    "where",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _answer(database: int, request: str) -> str:
    answer: str = importlib.import_module(f"{__name__}.api.sql_requests").answer(database, request)
    return answer


register_function_texts(__version__)  # must come first; its docstring says why
register_extension(__version__)
register_sql_functions(__version__, _answer)
