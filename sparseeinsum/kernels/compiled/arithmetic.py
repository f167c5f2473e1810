"""Kernels: what differs between dtypes: the arithmetic of real numbers, of int64 and of complex numbers."""

from collections.abc import Callable
from dataclasses import dataclass

from numba import njit, types

from sparseeinsum.assets import load_kernels

aggregation = load_kernels("aggregation")
complexes = load_kernels("complexes")
contraction = load_kernels("contraction")
elementwise = load_kernels("elementwise")
evaluation = load_kernels("evaluation")
expression = load_kernels("expression")
integers = load_kernels("integers")

Compiled = Callable[..., int]


@dataclass(frozen=True, slots=True)
class Numbers:
    """What the kernels of one dtype compute with: functions that numba compiles, which return 0 or a code.

    Attributes:
        dtype: That of arrays.
        parts: The dtype of real and imaginary parts, where it has them.
        bits: int64 or int32, as many of which as `words` says make up an element.
        words: How many.
        block: Elements that an expression runs over at a time.
        combine: (operation, u, v, out); the operations are those of elementwise.py.
        scale: (factor, u, out).
        outer: (u, v, out).
        dot: (u, v, out), which has one element.
        add_scaled: (w, factor, v) adds to w.
        contract: (plan, u, v, w) adds to w.
        identity_of: aggregate -> what folding nothing gives.
        fold: (aggregate, w, u) folds u into w.
        fold_line: (aggregate, w, at, stride, u, n) does so with elements of w at a distance.
        check: (program, constants, aggregate): whether an expression and what folds it are defined.
        evaluate_block: (program, constants, u, v, stack).
        count_not_finite: (u, fill) -> elements that are NaN, or infinite and not the fill.
    """

    dtype: types.Type
    parts: types.Type
    bits: types.Integer
    words: int
    block: int
    combine: Compiled
    scale: Compiled
    outer: Compiled
    dot: Compiled
    add_scaled: Compiled
    contract: Compiled
    identity_of: Callable[..., object]
    fold: Compiled
    fold_line: Compiled
    check: Compiled
    evaluate_block: Compiled
    count_not_finite: Compiled


def numbers_of(suffix: str) -> Numbers:
    """The numbers of a dtype, by the suffix that its kernels have."""
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


def _real(dtype: types.Float, bits: types.Integer) -> Numbers:
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
    def evaluate_block(program, constants, u, v, stack):
        return evaluation.evaluate_block(
            program, constants, u, v, stack, evaluation.BLOCK, evaluation.constant, evaluation.apply
        )

    return Numbers(
        dtype=dtype,
        parts=dtype,
        bits=bits,
        words=1,
        block=evaluation.BLOCK,
        combine=elementwise.combine,
        scale=elementwise.scale,
        outer=elementwise.outer,
        dot=dot,
        add_scaled=aggregation.add_scaled,
        contract=contract,
        identity_of=aggregation.identity_of,
        fold=aggregation.fold,
        fold_line=aggregation.fold_line,
        check=check,
        evaluate_block=evaluate_block,
        count_not_finite=elementwise.count_not_finite,
    )


def _integers() -> Numbers:
    @njit
    def contract(plan, u, v, w):
        return contraction.contract_lines(plan, u, v, w, integers.add_line)

    @njit
    def check(program, constants, aggregate):
        if aggregate == aggregation.LOGSUMEXP:
            return integers.NOT_OF_INTEGERS
        code = expression.check_real(constants)
        return code if code < 0 else integers.check_program(program, expression.kinds_of(constants))

    @njit
    def constant(constants, index):
        return expression.wholes_of(constants)[index]

    @njit
    def evaluate_block(program, constants, u, v, stack):
        return evaluation.evaluate_block(program, constants, u, v, stack, evaluation.BLOCK, constant, integers.apply)

    return Numbers(
        dtype=types.int64,
        parts=types.int64,
        bits=types.int64,
        words=1,
        block=evaluation.BLOCK,
        combine=integers.combine,
        scale=integers.scale,
        outer=integers.outer,
        dot=integers.dot,
        add_scaled=integers.add_scaled,
        contract=contract,
        identity_of=integers.identity_of,
        fold=integers.fold,
        fold_line=integers.fold_line,
        check=check,
        evaluate_block=evaluate_block,
        count_not_finite=elementwise.count_not_finite,
    )


def _complex(dtype: types.Complex, parts: types.Float, bits: types.Integer) -> Numbers:
    @njit
    def contract(plan, u, v, w):
        return contraction.contract(plan, u, v, w, complexes.add_line)

    @njit
    def check(program, constants, aggregate):
        code = complexes.check_aggregate(aggregate)
        return code if code < 0 else complexes.check_program(program)

    @njit
    def constant(constants, index):
        return complexes.constant(constants, expression.kinds_of(constants), index)

    @njit
    def evaluate_block(program, constants, u, v, stack):
        return evaluation.evaluate_block(program, constants, u, v, stack, complexes.BLOCK, constant, complexes.apply)

    return Numbers(
        dtype=dtype,
        parts=parts,
        bits=bits,
        words=2,
        block=complexes.BLOCK,
        combine=complexes.combine,
        scale=complexes.scale,
        outer=complexes.outer,
        dot=complexes.dot,
        add_scaled=complexes.add_scaled,
        contract=contract,
        identity_of=complexes.identity_of,
        fold=complexes.fold,
        fold_line=complexes.fold_line,
        check=check,
        evaluate_block=evaluate_block,
        count_not_finite=complexes.count_not_finite,
    )
