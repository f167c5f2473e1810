"""Kernels: compiles Python functions to LLVM bitcode for any processor, with numba.

The bitcode does not refer to Python, so that a process without Python can load the machine code.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.cpu import CPUContext, CPUTargetOptions
from numba.core.dispatcher import Dispatcher
from numba.core.runtime.context import NRTContext

from sparseeinsum.kernels.building.code_generation import make_internal
from sparseeinsum.kernels.building.exporting import export
from sparseeinsum.kernels.compiled.group_functions import Compiled, exported_by, functions_of, written_by_hand
from sparseeinsum.kernels.index_checks import are_checked


def compile_group(group: str) -> bytes:
    """Compile one of `groups.GROUPS` to bitcode, in which only the exported functions are external."""
    module = llvm.parse_assembly(written_by_hand(group))
    compiled: dict[Compiled, str] = {}
    linked: set[JITCodeLibrary] = set()
    with _quick_compilation():
        for name, function in functions_of(group).items():
            if function not in compiled:
                compiled[function] = _compile(function, module, linked)
            export(module, compiled[function], name, _count_parameters(function))
    make_internal(module, exported_by(group))
    return bytes(module.as_bitcode())


@contextmanager
def _quick_compilation() -> Iterator[None]:
    """Keep numba from linking, optimising and wrapping every called function, which more than doubles the time.

    It also keeps numba from compiling a function again for every constant argument, and from counting references: the
    arrays of kernels are views that own no memory. Numba has no options for this that called functions inherit, so that
    its methods are replaced while the context is open.
    """
    finalize_options, compile_for = CPUTargetOptions.finalize, Dispatcher.compile

    def finalize_without_wrappers(self: object, flags: Any, options: object) -> None:
        finalize_options(self, flags, options)
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        flags.boundscheck = are_checked()

    def leave_unlinked(self: JITCodeLibrary) -> None:
        self._finalized = True

    def add_layout(self: JITCodeLibrary, module: llvm.ModuleRef) -> None:
        module.data_layout = self._codegen._data_layout

    def compile_for_types(self: Dispatcher, signature: Any) -> object:
        is_call = isinstance(signature, tuple)
        return compile_for(self, tuple(map(types.unliteral, signature)) if is_call else signature)

    replacements: tuple[tuple[object, str, object], ...] = (
        (CPUTargetOptions, "finalize", finalize_without_wrappers),
        (
            CPUContext,
            "get_executable",
            lambda *_: [].append,
        ),  # numba needs a distinct builtin each time, but never calls it
        (NRTContext, "_call_incref_decref", lambda *_: None),
        (JITCodeLibrary, "finalize", leave_unlinked),
        (JITCodeLibrary, "_optimize_functions", add_layout),
        (Dispatcher, "compile", compile_for_types),
        (cgutils, "do_boundscheck", _end_out_of_bounds),
    )
    replaced = [(owner, name, getattr(owner, name)) for owner, name, _ in replacements]
    for owner, name, replacement in replacements:
        setattr(owner, name, replacement)
    try:
        yield
    finally:
        for owner, name, original in replaced:
            setattr(owner, name, original)


def _end_out_of_bounds(_context: object, builder: ir.IRBuilder, index: ir.Value, size: ir.Value, *_: object) -> None:
    """Emit code that ends the process if an index is out of bounds, because kernels cannot raise exceptions."""
    with cgutils.if_unlikely(
        builder, builder.icmp_unsigned(">=", index, size)
    ):  # negative indices are large as unsigned ones
        builder.call(builder.module.declare_intrinsic("llvm.trap", (), ir.FunctionType(ir.VoidType(), ())), ())


def _count_parameters(function: Compiled) -> int:
    return len(inspect.signature(getattr(function, "py_func", function)).parameters)


def _compile(function: Compiled, module: llvm.ModuleRef, linked: set[JITCodeLibrary]) -> str:
    """Add a function of int64 that returns int64, and all that it calls, to a module; returns its mangled name."""
    signature = types.int64(*[types.int64] * _count_parameters(function))
    compiled = njit(signature, error_model="numpy")(getattr(function, "py_func", function))
    (result,) = compiled.overloads.values()
    waiting = [result.library]
    while waiting:
        library = waiting.pop()
        if library not in linked:
            linked.add(library)
            waiting += library._linking_libraries
            _link(library._final_module, module)
    return str(result.fndesc.mangled_name)


def _link(part: llvm.ModuleRef, module: llvm.ModuleRef) -> None:
    """Link a part into a module; the definitions that the module already has stay."""
    for function in part.functions:
        if not function.is_declaration:
            function.linkage = "weak_odr"
    module.link_in(part, preserve=True)
