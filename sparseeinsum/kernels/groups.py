"""Kernels: defines the groups of functions that are compiled together, and which groups each host needs."""

from dataclasses import dataclass

from sparseeinsum.kernels.catalogue import functions


@dataclass(frozen=True, slots=True)
class Group:
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
GROUPS = {
    group.name: group
    for group in (
        Group("f64", _KERNELS),
        Group("f32", _KERNELS),
        Group("i64", _KERNELS),
        Group("c128", _KERNELS),
        Group("c64", _KERNELS),
        Group("measures", ("measures",)),
        Group("matrix_products", ("matrix_products", "blas_calls")),
        Group("processor_choice", ("processor_choice",), is_for_all_processors=True),
        Group("duckdb", ("duckdb.scalars", "duckdb.aggregates", "duckdb.views", "duckdb.hint", "duckdb.registration")),
        Group("postgresql", ("postgresql.scalars", "postgresql.aggregates")),
    )
}
HOSTS = ("duckdb", "postgresql")

# Groups that share much code: compiling them in one process takes half as long.
BATCHES = (
    ("f64", "f32", "i64"),
    ("c128", "c64", "measures"),
    ("matrix_products", "processor_choice", *HOSTS),
)


def groups_of(host: str) -> tuple[Group, ...]:
    """List the groups of which the library for one of HOSTS consists."""
    return tuple(group for group in GROUPS.values() if group.name == host or group.name not in HOSTS)


def kernels_of(dtype: str) -> tuple[str, ...]:
    """List the names of the kernels that functions of a dtype need."""
    return tuple(sorted({function.kernel for function in functions() if dtype in function.dtypes} - {""}))


def measures_in_use() -> tuple[str, ...]:
    """List the names of the measures that functions need."""
    return tuple(sorted({function.measure for function in functions()} - {""}))
