"""Kernels: defines the groups of functions that are compiled together, and which groups each host needs."""

from dataclasses import dataclass

from sparseeinsum.kernels.array_functions import array_functions, postgresql_functions


@dataclass(frozen=True, slots=True)
class CompilationGroup:
    """Functions that are compiled into one object file for each processor.

    Attributes:
        name: The name of the group.
        modules: The modules of the functions, below `kernels.compiled`.
        is_for_all_processors: Whether one object file serves all processors, because it runs before one is chosen.
    """

    name: str
    modules: tuple[str, ...]
    is_for_all_processors: bool = False


_KERNELS = ("row_kernels", "arithmetic")
# Those that take longest come first: as many are compiled at once as there are processors.
GROUPS = {
    group.name: group
    for group in (
        CompilationGroup("f64", _KERNELS),
        CompilationGroup("f32", _KERNELS),
        CompilationGroup("i64", _KERNELS),
        CompilationGroup(
            "duckdb",
            (
                *("duckdb.scalars", "duckdb.aggregates", "duckdb.compression", "duckdb.list_compression"),
                *("duckdb.views", "duckdb.gathers", "duckdb.dots", "duckdb.keeping", "duckdb.row_products"),
                *("duckdb.row_matches", "duckdb.hint", "duckdb.row_numbers", "duckdb.function_list"),
                *("duckdb.table_data", "duckdb.number_products", "duckdb.sparse_matmul", "duckdb.array_bytes"),
                *("duckdb.vector_products", "duckdb.collecting", "duckdb.reservations", "duckdb.gathered_tuples"),
                "duckdb.placed_arrays",
                *("duckdb.entry_arrays", "duckdb.threads", "duckdb.registration"),
            ),
        ),
        CompilationGroup("c128", _KERNELS),
        CompilationGroup("c64", _KERNELS),
        CompilationGroup(
            "postgresql",
            (
                *("postgresql.scalars", "postgresql.aggregates", "postgresql.compression", "postgresql.row_products"),
                *("postgresql.gathers", "postgresql.collecting", "postgresql.matches", "postgresql.scaled_dots"),
                *("postgresql.whole_sums", "postgresql.whole_products", "postgresql.sparse_matmul"),
                "postgresql.entry_numbers",
            ),
        ),
        CompilationGroup("measures", ("measures",)),
        CompilationGroup("matrix_products", ("matrix_products", "blas_calls")),
        CompilationGroup("processor_choice", ("processor_choice",), is_for_all_processors=True),
    )
}
HOSTS = ("duckdb", "postgresql")


def groups_of(host: str) -> tuple[CompilationGroup, ...]:
    """List the groups of which the library for one of HOSTS consists."""
    return tuple(group for group in GROUPS.values() if group.name == host or group.name not in HOSTS)


def kernels_of(dtype: str) -> tuple[str, ...]:
    """List the names of the kernels that functions of a dtype need."""
    functions = (*array_functions(), *postgresql_functions())
    return tuple(sorted({function.kernel for function in functions if dtype in function.dtypes} - {""}))


def measures_in_use() -> tuple[str, ...]:
    """List the names of the measures that functions need."""
    return tuple(sorted({function.measure for function in array_functions()} - {""}))
