"""Kernels: names of compiled functions and of data, in libraries and in the object files that these are made of."""

PARTS = ("compute", "batch", "initialise", "combine", "part_size")  # of a kernel

GEMM_DTYPES = ("f64", "f32", "c128", "c64")
GEMMS = tuple(f"sparseeinsum_gemm_{dtype}" for dtype in GEMM_DTYPES)

# What a library for DuckDB exports.
ENTRY_POINT = "sparseeinsum_init_c_api"  # DuckDB derives the name from that of the file
CONFIGURE = "sparseeinsum_configure"  # takes the address of what the table BLAS is to hold
CHOSEN_PROCESSOR = "sparseeinsum_processor"  # returns its name, or 0 where the code is for none like the one at hand
TABLE_OF_RESIDENTS = "sparseeinsum_table_of_residents"  # return addresses of tables
TABLE_OF_USERS_FUNCTIONS = "sparseeinsum_table_of_users_functions"
STOP_WORD = "sparseeinsum_stop_word"  # returns the address of a word: kernels stop while it is another one than 0
EXPORTED_TO_DUCKDB = (
    *(ENTRY_POINT, CONFIGURE, CHOSEN_PROCESSOR),
    *(TABLE_OF_RESIDENTS, TABLE_OF_USERS_FUNCTIONS, STOP_WORD),
)

# Tables in a library.
RESIDENTS = "sparseeinsum_residents"  # see residents.py
USERS_FUNCTIONS = "sparseeinsum_users_functions"  # see udfs/expression.py
BLAS = "sparseeinsum_blas"  # addresses of a gemm of each of GEMM_DTYPES, and of what sets the threads that they run on
BLAS_WORDS = len(GEMM_DTYPES) + 1


def measure_symbol(measure: str) -> str:
    """The function of measures.py of a name."""
    return f"sparseeinsum_measure_{measure}"


def kernel_symbol(kernel: str, part: str, suffix: str) -> str:
    """One of the PARTS of a kernel for one dtype."""
    return f"sparseeinsum_{kernel}_{part}_{suffix}"


def processor_symbol(symbol: str, processor: str) -> str:
    """What a symbol is called in the code for one processor of several that a library is for.

    >>> processor_symbol("sparseeinsum_gemm_f64", "x86-64-v3")
    'sparseeinsum_gemm_f64__x86_64_v3'
    """
    return f"{symbol}__{processor.replace('-', '_')}"
