"""Kernels: compiles LLVM modules to object files of machine code."""

import re
from collections.abc import Collection

import llvmlite.binding as llvm

from sparseeinsum.kernels.building.externals import check_externals
from sparseeinsum.kernels.building.processors import has_wide_vectors
from sparseeinsum.kernels.building.targets import Target, target_machine
from sparseeinsum.kernels.symbols import MATRIX_PRODUCTS, WIDE_VECTORS, processor_symbol

_PADDING = "sparseeinsum_room"
_CALLED = re.compile(r'call [^@\n]*@"?([^"(]+)')
_WORD_BYTES, _PAGE_BYTES = 8, 4096  # the smallest page size of any processor


def object_of_group(bitcode: bytes, target: Target) -> bytes:
    """Compile a group's bitcode for a target; the names of exported functions get the processor as suffix, if any."""
    module = optimise(_with_vector_size(_parse(bitcode, target), target), target)
    check_externals(module)
    if target.processor is not None:
        for function in _exports(module):
            function.name = processor_symbol(function.name, target.processor)
        for function in module.functions:
            if function.is_declaration and function.name in MATRIX_PRODUCTS:  # defined in another group
                function.name = processor_symbol(function.name, target.processor)
    return emit_object(module, target)


def object_of_text(text: str, target: Target) -> bytes:
    """Compile the text of LLVM IR to an object file."""
    module = llvm.parse_assembly(text)
    _retarget(module, target)
    module.verify()
    return emit_object(module, target)


def _parse(bitcode: bytes, target: Target) -> llvm.ModuleRef:
    """Parse bitcode, which was made for any 64-bit processor, as a module for a target.

    Exported functions become hidden: visible to other object files of the library, but not outside of it.
    """
    module = llvm.parse_bitcode(bitcode)
    _retarget(module, target)
    for function in _exports(module):
        function.visibility = "hidden"
    for variable in module.global_variables:
        if variable.linkage is llvm.Linkage.common:  # numba's, for wrappers of Python that are not here
            variable.linkage = "internal"
    return module


def _with_vector_size(module: llvm.ModuleRef, target: Target) -> llvm.ModuleRef:
    """Tell code that asks for it whether the processor has vectors of 64 bytes."""
    if WIDE_VECTORS in (variable.name for variable in module.global_variables):
        module.link_in(llvm.parse_assembly(f"@{WIDE_VECTORS} = constant i1 {int(has_wide_vectors(target))}"))
        module.get_global_variable(WIDE_VECTORS).linkage = "internal"
    return module


def _retarget(module: llvm.ModuleRef, target: Target) -> None:
    module.triple = target.triple
    module.data_layout = str(target_machine(target).target_data)


def exported_names(bitcode: bytes) -> list[str]:
    """List the names of the functions that a group's bitcode exports."""
    return [function.name for function in _exports(llvm.parse_bitcode(bitcode))]


def _exports(module: llvm.ModuleRef) -> list[llvm.ValueRef]:
    return [
        function
        for function in module.functions
        if not function.is_declaration and function.linkage is llvm.Linkage.external
    ]


def make_internal(module: llvm.ModuleRef, exported: Collection[str]) -> None:
    """Make all functions internal except those named in `exported`."""
    for function in module.functions:
        if not function.is_declaration and function.name not in exported:
            function.linkage = "internal"
    module.verify()


def optimise(module: llvm.ModuleRef, target: Target) -> llvm.ModuleRef:
    """Run LLVM's optimisation passes on a module in place; returns the module."""
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = True
    builder = llvm.create_pass_builder(target_machine(target), options)
    builder.getModulePassManager().run(module, builder)
    return module


def emit_object(module: llvm.ModuleRef, target: Target) -> bytes:
    """Emit the object file of a module, which LLVM's loader can load in any process.

    For each external function that the code calls, the loader needs a word of writable memory, which it does not count
    when it reserves memory (`RuntimeDyldImpl::computeTotalAllocSize`, LLVM 20); without spare room it ends the process.
    A writable byte that is aligned to a page makes the loader reserve one page more.
    """
    called = set(_CALLED.findall(str(module)))
    externals = sum(function.is_declaration and function.name in called for function in module.functions)
    assert 2 * _WORD_BYTES * externals < _PAGE_BYTES, "more external functions are called than the loader has room for"
    module.link_in(llvm.parse_assembly(f"@{_PADDING} = global i8 1, align {_PAGE_BYTES}"))
    module.get_global_variable(_PADDING).linkage = "internal"  # an internal variable would not be linked in
    return bytes(target_machine(target).emit_object(module))
