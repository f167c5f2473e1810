"""Kernels: lists the functions of each group of `groups.GROUPS` by their names in object files.

All take and return int64 and become C functions.
"""

from collections.abc import Callable, Iterator, Mapping

from sparseeinsum.kernels.compiled import matrix_products, measures, processor_choice
from sparseeinsum.kernels.compiled.arithmetic import arithmetic_of
from sparseeinsum.kernels.compiled.blas_calls import gemm_code
from sparseeinsum.kernels.compiled.duckdb import aggregates as duckdb_aggregates
from sparseeinsum.kernels.compiled.duckdb import (
    array_bytes,
    collecting,
    compression,
    dots,
    entry_arrays,
    function_list,
    gathered_tuples,
    gathers,
    hint,
    keeping,
    list_compression,
    number_products,
    placed_arrays,
    registration,
    reservations,
    row_matches,
    row_numbers,
    row_products,
    sparse_matmul,
    table_data,
    threads,
    vector_products,
    views,
)
from sparseeinsum.kernels.compiled.duckdb import scalars as duckdb_scalars
from sparseeinsum.kernels.compiled.postgresql import aggregates as postgresql_aggregates
from sparseeinsum.kernels.compiled.postgresql import collecting as postgresql_collecting
from sparseeinsum.kernels.compiled.postgresql import compression as postgresql_compression
from sparseeinsum.kernels.compiled.postgresql import entry_numbers as postgresql_entry_numbers
from sparseeinsum.kernels.compiled.postgresql import gathers as postgresql_gathers
from sparseeinsum.kernels.compiled.postgresql import matches as postgresql_matches
from sparseeinsum.kernels.compiled.postgresql import row_products as postgresql_row_products
from sparseeinsum.kernels.compiled.postgresql import scalars as postgresql_scalars
from sparseeinsum.kernels.compiled.postgresql import scaled_dots as postgresql_scaled_dots
from sparseeinsum.kernels.compiled.postgresql import sparse_matmul as postgresql_sparse_matmul
from sparseeinsum.kernels.compiled.postgresql import whole_products as postgresql_whole_products
from sparseeinsum.kernels.compiled.postgresql import whole_sums as postgresql_whole_sums
from sparseeinsum.kernels.compiled.row_kernels import row_kernels
from sparseeinsum.kernels.groups import kernels_of, measures_in_use
from sparseeinsum.kernels.symbols import MATRIX_PRODUCTS, PARTS, kernel_symbol, measure_symbol

Compiled = Callable[..., int]

_DUCKDB: tuple[Compiled, ...] = (
    duckdb_scalars.scalar_value,
    duckdb_scalars.scalar_list,
    duckdb_scalars.scalar_lists,
    duckdb_scalars.checked_value,
    duckdb_scalars.checked_list,
    duckdb_aggregates.aggregate_size,
    duckdb_aggregates.aggregate_init,
    duckdb_aggregates.aggregate_update,
    duckdb_aggregates.aggregate_combine,
    duckdb_aggregates.aggregate_finalize,
    duckdb_aggregates.aggregate_destroy,
    duckdb_aggregates.resident_finalize,
    compression.compression_size,
    compression.compression_init,
    compression.compression_update,
    list_compression.compression_update_lists,
    compression.compression_combine,
    compression.compression_finalize,
    compression.compression_destroy,
    collecting.collecting_size,
    collecting.collecting_init,
    collecting.collecting_update,
    gathered_tuples.collecting_update_gathered,
    collecting.collecting_combine,
    collecting.collecting_finalize,
    collecting.collecting_destroy,
    reservations.reserving_size,
    reservations.reserving_init,
    reservations.reserving_update,
    reservations.reserving_combine,
    reservations.reserving_finalize,
    reservations.reserving_destroy,
    reservations.writing_size,
    reservations.writing_init,
    reservations.writing_update,
    reservations.writing_update_handles,
    gathered_tuples.writing_update_gathered,
    reservations.writing_combine,
    reservations.writing_finalize,
    reservations.writing_destroy,
    placed_arrays.placed_list,
    views.view_rows,
    gathers.gather_rows,
    array_bytes.array_bytes,
    array_bytes.array_of_bytes,
    entry_arrays.entry_numbers,
    entry_arrays.elements_at_rows,
    entry_arrays.elements_at_positions,
    sparse_matmul.multiply_by_array,
    sparse_matmul.multiply_transposed,
    vector_products.multiply_by_vector,
    threads.read_threads,
    dots.dot_rows,
    keeping.keep_rows,
    keeping.release_kept,
    row_products.multiply_rows,
    row_matches.match_rows,
    number_products.multiply_numbers,
    hint.hint_bind,
    hint.hint_init,
    hint.hint_scan,
    row_numbers.row_numbers_bind,
    row_numbers.row_numbers_init,
    row_numbers.row_numbers_scan,
    function_list.function_list_bind,
    function_list.function_list_init,
    function_list.function_list_scan,
    table_data.table_data_destroy,
    registration.load_extension,
)
_POSTGRESQL: tuple[Compiled, ...] = (
    postgresql_scalars.postgres_value,
    postgresql_scalars.postgres_array,
    postgresql_scalars.postgres_checked,
    postgresql_scalars.postgres_set,
    postgresql_scalars.postgres_bytes,
    postgresql_scalars.postgres_array_of_bytes,
    postgresql_aggregates.postgres_transition,
    postgresql_aggregates.postgres_combine,
    postgresql_aggregates.postgres_transition_with_background,
    postgresql_aggregates.postgres_combine_with_background,
    postgresql_aggregates.postgres_result_with_background,
    postgresql_compression.postgres_compress_entry,
    postgresql_compression.postgres_compress_lists,
    postgresql_compression.postgres_compress_combine,
    postgresql_compression.postgres_compressed,
    postgresql_row_products.postgres_product_row,
    postgresql_row_products.postgres_product_number,
    postgresql_gathers.postgres_product_sum,
    postgresql_gathers.postgres_scaled_dot,
    postgresql_sparse_matmul.postgres_sparse_matmul,
    postgresql_sparse_matmul.postgres_sparse_matmul_transposed,
    postgresql_collecting.postgres_collect,
    postgresql_collecting.postgres_collected,
    postgresql_collecting.postgres_compress_row,
    postgresql_collecting.postgres_compressed_rows,
    postgresql_matches.postgres_matched,
    postgresql_scaled_dots.postgres_scaled_dot_row,
    postgresql_scaled_dots.postgres_scaled_dot_rows,
    postgresql_whole_sums.postgres_product_sums,
    postgresql_whole_sums.postgres_product_numbers,
    postgresql_whole_products.postgres_product_rows,
    postgresql_whole_products.postgres_masked_product_rows,
    postgresql_entry_numbers.postgres_entries,
    postgresql_entry_numbers.postgres_with_numbers,
)


def functions_of(group: str) -> Mapping[str, Compiled]:
    """Return the functions that numba compiles for a group, by symbol."""
    match group:
        case "duckdb":
            return _by_name(_DUCKDB)
        case "postgresql":
            return _by_name(_POSTGRESQL)
        case "processor_choice":
            return _by_name((processor_choice.choose_processor,))
        case "matrix_products":
            return matrix_products.matrix_products()
        case "measures":
            return {measure_symbol(name): getattr(measures, f"measure_{name}") for name in measures_in_use()}
    return dict(_kernels(group))


def written_by_hand(group: str) -> str:
    """Return the LLVM IR of a group's functions that are not written in Python."""
    return gemm_code() + matrix_products.tile_code() if group == "matrix_products" else ""


def exported_by(group: str) -> frozenset[str]:
    """Return the symbols of a group's functions that other groups or a host may call."""
    return frozenset(MATRIX_PRODUCTS if group == "matrix_products" else functions_of(group))


def _by_name(callbacks: tuple[Compiled, ...]) -> Mapping[str, Compiled]:
    return {callback.__name__: callback for callback in callbacks}


def _kernels(dtype: str) -> Iterator[tuple[str, Compiled]]:
    kernels = row_kernels(arithmetic_of(dtype))
    for name in kernels_of(dtype):
        for part in PARTS:
            function = getattr(kernels[name], part)
            if function is not None:
                yield kernel_symbol(name, part, dtype), function
