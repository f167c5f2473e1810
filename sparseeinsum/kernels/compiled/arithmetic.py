"""Kernels: collects what differs between dtypes: the arithmetic of real numbers, int64 and complex numbers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from numba import njit, types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels.array_functions import elementwise_kernels
from sparseeinsum.kernels.compiled.operator_codes import (
    folds_by_code,
    function_of,
    functions_by_code,
    has_aggregates,
    has_functions,
    identities,
    scans_by_code,
    semirings_by_code,
)
from sparseeinsum.kernels.descriptors import UNKNOWN_SEMIRING
from sparseeinsum.kernels.symbols import ARRAY_AND_NUMBER, NUMBER_AND_ARRAY
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.operators.functions import FUNCTIONS

aggregation = load_kernels("aggregation")
complexes = load_kernels("complexes")
compressed_rows = load_kernels("compressed_rows")
contraction = load_kernels("contraction")
elementwise = load_kernels("elementwise")
evaluation = load_kernels("evaluation")
expression = load_kernels("expression")
integers = load_kernels("integers")

Compiled = Callable[..., int]


@dataclass(frozen=True, slots=True, eq=False)
class DtypeArithmetic:
    """The arithmetic of one dtype. Functions are compiled by numba and return 0 or an error code, unless noted.

    Attributes:
        dtype: The dtype of arrays.
        part_dtype: The dtype of real and imaginary parts; `dtype` itself for real numbers.
        bits: int64 or int32, to access the bits of elements.
        words: The number of words of type `bits` in an element.
        block: The number of elements for which an expression is evaluated at a time.
        functions: By kernel of a function of two operands: (u, v, out) writes the function of u and v to out.
        scale: (factor, u, out) writes factor * u to out.
        outer: (u, v, out) writes the outer product to out.
        dot: (u, v, out) writes the inner product to the only element of out.
        scaled_dot: (factor, u, v, out) writes the sum of factor * u[i] * v[i] to the only element of out.
        add_scaled: (w, factor, v) adds factor * v to w.
        sum_rows: (w, numbers, positions, u) writes the sum of numbers[e] * u[positions[e]] over e to w; see
            `make_sum_rows`.
        add_product_rows: (w, numbers, positions, u, v) adds products of rows of u and v; see `make_add_product_rows`.
        reduce_rows: (semiring, ...) writes a row of a product with an array; see `make_reduce_rows`.
        multiply_row: (semiring, ...) writes a row of a product of sparse matrices; see `make_multiply_row`.
        multiply_by_vector: (semiring, ...) writes rows of a product with a vector; see `make_multiply_by_vector`.
        multiply_masked_row: (semiring, ...) writes one only where a mask has entries; see `make_multiply_masked_row`.
        contract: (plan, u, v, w) adds the contraction of u and v to w.
        identities: The identities of aggregates, by code.
        fold: (aggregate, w, u) folds u into w, element by element.
        fold_line: (aggregate, w, at, stride, u, n) folds n elements of u into w[at], w[at + stride], ...
        scan: (aggregate, identity, u, w, n, inner) scans u along the middle axis of its shape (k, n, inner) into w.
        check: (program, constants, aggregate) checks that the dtype has the functions and the aggregate.
        evaluate_block: (program, constants, u, v, n, stack) evaluates an expression for one block.
        count_not_finite: (u, fill) returns the number of elements that are NaN, or infinite and not the fill.
    """

    dtype: types.Type
    part_dtype: types.Type
    bits: types.Integer
    words: int
    block: int
    functions: Mapping[str, Compiled]
    scale: Compiled
    outer: Compiled
    dot: Compiled
    scaled_dot: Compiled
    add_scaled: Compiled
    sum_rows: Compiled
    add_product_rows: Compiled
    reduce_rows: Compiled
    multiply_row: Compiled
    multiply_by_vector: Compiled
    multiply_masked_row: Compiled
    contract: Compiled
    identities: Array
    fold: Compiled
    fold_line: Compiled
    scan: Compiled
    check: Compiled
    evaluate_block: Compiled
    count_not_finite: Compiled


def arithmetic_of(suffix: str) -> DtypeArithmetic:
    """Return the arithmetic of a dtype, by the suffix of its kernels."""
    match suffix:
        case "f64":
            return _real(types.float64, types.int64)
        case "f32":
            return _real(types.float32, types.int32)
        case "i64":
            return _integers()
        case "c128":
            return _complex(types.complex128, types.float64, types.int64)
        case "c64":
            return _complex(types.complex64, types.float32, types.int32)
    raise ValueError(f"unknown group of kernels {suffix!r}")


def _arithmetic(kind: str) -> Mapping[str, Compiled]:
    """Return the functions of two operands that SQL has, by kernel, as far as numbers of `kind` have them."""
    functions = {
        kernel: name for kernel, name in elementwise_kernels().items() if getattr(FUNCTIONS[name], kind) is not None
    }
    of_arrays = {kernel: function_of(kind, name, (1, 1)) for kernel, name in functions.items()}
    if kind == "complex":
        return of_arrays
    with_numbers = {
        f"{kernel}_{operands}": function_of(kind, name, steps)
        for kernel, name in functions.items()
        for operands, steps in ((ARRAY_AND_NUMBER, (1, 0)), (NUMBER_AND_ARRAY, (0, 1)))
    }
    return of_arrays | with_numbers


def _in_semirings(kind: str, make: Callable[..., Compiled]) -> Compiled:
    """Return the function that `make` makes of the bodies of a semiring, by code of the semiring."""
    compiled: Compiled = evaluation.make_switch(
        [
            _refuse if bodies is None else _in_semiring(make(*bodies, evaluation.with_code))
            for bodies in semirings_by_code(kind)
        ]
    )
    return compiled


def _in_semiring(function: Compiled) -> Compiled:
    @njit
    def compute(semiring, *arguments):
        return function(*arguments)

    return compute


@njit
def _refuse(semiring, *arguments):
    return UNKNOWN_SEMIRING


@njit
def _scaled_dot(factor, u, v, out):
    out[0] = contraction.scaled_dot(factor, u, v)
    return 0


def _real(dtype: types.Float, bits: types.Integer) -> DtypeArithmetic:
    apply = evaluation.make_apply(functions_by_code("real"), True)
    fold, fold_line = aggregation.make_folds(folds_by_code("real"), aggregation.UNKNOWN_AGGREGATE, evaluation)
    scan = aggregation.make_scan(scans_by_code("real"), aggregation.UNKNOWN_AGGREGATE, evaluation)

    @njit
    def dot(u, v, out):
        out[0] = contraction.dot(u, v)
        return 0

    @njit
    def contract(plan, u, v, w):
        return contraction.contract_real(plan, u, v, w)

    @njit
    def check(program, constants, aggregate):
        return expression.check_real(constants)

    @njit
    def evaluate_block(program, constants, u, v, n, stack):
        return evaluation.evaluate_block(
            program, constants, u, v, n, stack, evaluation.BLOCK, evaluation.constant, apply
        )

    return DtypeArithmetic(
        dtype=dtype,
        part_dtype=dtype,
        bits=bits,
        words=1,
        block=evaluation.BLOCK,
        functions=_arithmetic("real"),
        scale=elementwise.scale,
        outer=elementwise.outer,
        dot=dot,
        scaled_dot=_scaled_dot,
        add_scaled=aggregation.add_scaled,
        sum_rows=compressed_rows.make_sum_rows_by_four(contraction.add_four_scaled),
        add_product_rows=compressed_rows.make_add_product_rows(aggregation.add_scaled_product),
        reduce_rows=_in_semirings("real", compressed_rows.make_reduce_rows),
        multiply_row=_in_semirings("real", compressed_rows.make_multiply_row),
        multiply_by_vector=_in_semirings("real", compressed_rows.make_multiply_by_vector),
        multiply_masked_row=_in_semirings("real", compressed_rows.make_multiply_masked_row),
        contract=contract,
        identities=identities(str(dtype)),
        fold=fold,
        fold_line=fold_line,
        scan=scan,
        check=check,
        evaluate_block=evaluate_block,
        count_not_finite=elementwise.count_not_finite,
    )


def _integers() -> DtypeArithmetic:
    apply = evaluation.make_apply(functions_by_code("integer"), False)
    fold, fold_line = aggregation.make_folds(folds_by_code("integer"), integers.NOT_OF_INTEGERS, evaluation)
    scan = aggregation.make_scan(scans_by_code("integer"), integers.NOT_OF_INTEGERS, evaluation)
    has_function, has_aggregate = has_functions("integer"), has_aggregates("integer")

    @njit
    def contract(plan, u, v, w):
        return contraction.contract_lines(plan, u, v, w, integers.add_line)

    @njit
    def check(program, constants, aggregate):
        if not has_aggregate[aggregate]:
            return integers.NOT_OF_INTEGERS
        code = expression.check_real(constants)
        return code if code < 0 else integers.check_program(program, expression.kinds_of(constants), has_function)

    @njit
    def constant(constants, index):
        return expression.wholes_of(constants)[index]

    @njit
    def evaluate_block(program, constants, u, v, n, stack):
        return evaluation.evaluate_block(program, constants, u, v, n, stack, evaluation.BLOCK, constant, apply)

    return DtypeArithmetic(
        dtype=types.int64,
        part_dtype=types.int64,
        bits=types.int64,
        words=1,
        block=evaluation.BLOCK,
        functions=_arithmetic("integer"),
        scale=integers.scale,
        outer=integers.outer,
        dot=integers.dot,
        scaled_dot=integers.scaled_dot,
        add_scaled=integers.add_scaled,
        sum_rows=compressed_rows.make_sum_rows(integers.add_scaled),
        add_product_rows=compressed_rows.make_add_product_rows(integers.add_scaled_product),
        reduce_rows=_in_semirings("integer", compressed_rows.make_reduce_rows),
        multiply_row=_in_semirings("integer", compressed_rows.make_multiply_row),
        multiply_by_vector=_in_semirings("integer", compressed_rows.make_multiply_by_vector),
        multiply_masked_row=_in_semirings("integer", compressed_rows.make_multiply_masked_row),
        contract=contract,
        identities=identities("int64"),
        fold=fold,
        fold_line=fold_line,
        scan=scan,
        check=check,
        evaluate_block=evaluate_block,
        count_not_finite=elementwise.count_not_finite,
    )


def _complex(dtype: types.Complex, part_dtype: types.Float, bits: types.Integer) -> DtypeArithmetic:
    apply = evaluation.make_apply(functions_by_code("complex"), False)
    fold, fold_line = aggregation.make_folds(folds_by_code("complex"), complexes.NOT_OF_COMPLEX, evaluation)
    scan = aggregation.make_scan(scans_by_code("complex"), complexes.NOT_OF_COMPLEX, evaluation)
    has_function, has_aggregate = has_functions("complex"), has_aggregates("complex")

    @njit
    def contract(plan, u, v, w):
        return contraction.contract(plan, u, v, w, complexes.add_line)

    @njit
    def check(program, constants, aggregate):
        if not has_aggregate[aggregate]:
            return complexes.NOT_OF_COMPLEX
        return complexes.check_program(program, has_function)

    @njit
    def constant(constants, index):
        return complexes.constant(constants, expression.kinds_of(constants), index)

    @njit
    def evaluate_block(program, constants, u, v, n, stack):
        return evaluation.evaluate_block(program, constants, u, v, n, stack, complexes.BLOCK, constant, apply)

    return DtypeArithmetic(
        dtype=dtype,
        part_dtype=part_dtype,
        bits=bits,
        words=2,
        block=complexes.BLOCK,
        functions=_arithmetic("complex"),
        scale=complexes.scale,
        outer=complexes.outer,
        dot=complexes.dot,
        scaled_dot=_scaled_dot,
        add_scaled=complexes.add_scaled,
        sum_rows=compressed_rows.make_sum_rows(complexes.add_scaled),
        add_product_rows=compressed_rows.make_add_product_rows(aggregation.add_scaled_product),
        reduce_rows=_in_semirings("complex", compressed_rows.make_reduce_rows),
        multiply_row=_in_semirings("complex", compressed_rows.make_multiply_row),
        multiply_by_vector=_in_semirings("complex", compressed_rows.make_multiply_by_vector),
        multiply_masked_row=_in_semirings("complex", compressed_rows.make_multiply_masked_row),
        contract=contract,
        identities=identities(str(dtype)),
        fold=fold,
        fold_line=fold_line,
        scan=scan,
        check=check,
        evaluate_block=evaluate_block,
        count_not_finite=complexes.count_not_finite,
    )
