"""Kernels: defines the names of functions and data in object files and libraries."""

# Of kernels, see calling_convention.py.
PARTS = ("compute", "compute_slice", "batch", "initialise", "combine", "finish", "part_size")

# Ends of the names of elementwise kernels that take an array and a number, in this order.
ARRAY_AND_NUMBER = "array_and_number"
NUMBER_AND_ARRAY = "number_and_array"

GEMM_DTYPES = ("f64", "f32", "c128", "c64")
GEMMS = tuple(f"sparseeinsum_gemm_{dtype}" for dtype in GEMM_DTYPES)
GPU_PRODUCT = "sparseeinsum_gpu_product"  # takes the number of the dtype and the arguments of a gemm
MATRIX_PRODUCTS = (*GEMMS, GPU_PRODUCT)
WIDE_VECTORS = "sparseeinsum_wide_vectors"  # whether the processor has vectors of 64 bytes

# The functions that a library for DuckDB exports.
ENTRY_POINT = "sparseeinsum_init_c_api"  # DuckDB derives the name from that of the file
CONFIGURE = "sparseeinsum_configure"  # takes the address of the new content of the table BLAS
CHOSEN_PROCESSOR = "sparseeinsum_processor"  # returns its name, or 0 if no code of the library can run here
TABLE_OF_RESIDENTS = "sparseeinsum_table_of_residents"  # returns the address of a table, as the next one
TABLE_OF_USER_FUNCTIONS = "sparseeinsum_table_of_users_functions"
RELEASE = "sparseeinsum_release"  # takes a handle of kept memory and releases it; returns 1, or 0 if there is none
STOP_WORD = "sparseeinsum_stop_word"  # returns the address of a word: kernels stop while it is not 0
EXPORTED_TO_DUCKDB = (
    *(ENTRY_POINT, CONFIGURE, CHOSEN_PROCESSOR),
    *(TABLE_OF_RESIDENTS, TABLE_OF_USER_FUNCTIONS, STOP_WORD, RELEASE),
)

# Tables in a library.
RESIDENTS = "sparseeinsum_residents"  # see residents.py
USER_FUNCTIONS = "sparseeinsum_users_functions"  # see udfs/expression.py
BLAS = "sparseeinsum_blas"  # addresses of the gemm of each of GEMM_DTYPES, then five more words
SETTER_WORD = len(GEMM_DTYPES)  # address of the function that sets the number of threads, 0 if there is none
MOST_THREADS_WORD = SETTER_WORD + 1  # the most threads of a matrix product
GPU_WORD = MOST_THREADS_WORD + 1  # address of the function that a GPU computes products with, 0 if there is none
LEAST_PRODUCTS_WORD = GPU_WORD + 1  # multiply-adds for each number of the matrices from which on it is called
STATEMENT_THREADS_WORD = LEAST_PRODUCTS_WORD + 1  # the threads of the last statement that began; 0 if not known
BLAS_WORDS = STATEMENT_THREADS_WORD + 1


def measure_symbol(measure: str) -> str:
    """Return the symbol of a function of measures.py."""
    return f"sparseeinsum_measure_{measure}"


def kernel_symbol(kernel: str, part: str, suffix: str) -> str:
    """Return the symbol of one of the PARTS of a kernel for one dtype."""
    return f"sparseeinsum_{kernel}_{part}_{suffix}"


def processor_symbol(symbol: str, processor: str) -> str:
    """Return the name of a symbol in the code for one of a library's processors.

    >>> processor_symbol("sparseeinsum_gemm_f64", "x86-64-v3")
    'sparseeinsum_gemm_f64__x86_64_v3'
    """
    return f"{symbol}__{processor.replace('-', '_')}"
