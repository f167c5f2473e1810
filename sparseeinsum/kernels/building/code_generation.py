"""Kernels: LLVM modules in, object files of a target's machine code out."""

import re
from collections.abc import Collection

import llvmlite.binding as llvm

from sparseeinsum.kernels.building.externals import check_externals
from sparseeinsum.kernels.building.targets import Target, target_machine
from sparseeinsum.kernels.symbols import GEMMS, processor_symbol

_ROOM = "sparseeinsum_room"
_CALLED = re.compile(r'call [^@\n]*@"?([^"(]+)')
_WORD_BYTES, _PAGE_BYTES = 8, 4096  # pages are as large on all processors, or larger


def object_of_group(bitcode: bytes, target: Target) -> bytes:
    """The object file of a group for a target; names of its functions tell the processor, where there is one."""
    module = optimised(_parsed(bitcode, target), target)
    check_externals(module)
    if target.processor is not None:
        for function in _exports(module):
            function.name = processor_symbol(function.name, target.processor)
        for function in module.functions:
            if function.is_declaration and function.name in GEMMS:  # of another group
                function.name = processor_symbol(function.name, target.processor)
    return emit_object(module, target)


def object_of_text(text: str, target: Target) -> bytes:
    """The object file of LLVM IR."""
    module = llvm.parse_assembly(text)
    _retarget(module, target)
    module.verify()
    return emit_object(module, target)


def _parsed(bitcode: bytes, target: Target) -> llvm.ModuleRef:
    """A module for a target, of bitcode that was made for any of 64 bits.

    What it defines is not seen outside its library. What it refers to may lie far away, where LLVM loads object files.
    """
    module = llvm.parse_bitcode(bitcode)
    _retarget(module, target)
    for function in _exports(module):
        function.visibility = "hidden"
    for variable in module.global_variables:
        if variable.linkage is llvm.Linkage.common:  # numba's, for wrappers of Python that are not here
            variable.linkage = "internal"
    return module


def _retarget(module: llvm.ModuleRef, target: Target) -> None:
    module.triple = target.triple
    module.data_layout = str(target_machine(target).target_data)


def exported_names(bitcode: bytes) -> list[str]:
    """Names of the functions that a group exports."""
    return [function.name for function in _exports(llvm.parse_bitcode(bitcode))]


def _exports(module: llvm.ModuleRef) -> list[llvm.ValueRef]:
    return [
        function
        for function in module.functions
        if not function.is_declaration and function.linkage is llvm.Linkage.external
    ]


def make_internal(module: llvm.ModuleRef, exported: Collection[str]) -> None:
    """Leave only some functions to be called from outside."""
    for function in module.functions:
        if not function.is_declaration and function.name not in exported:
            function.linkage = "internal"
    module.verify()


def optimised(module: llvm.ModuleRef, target: Target) -> llvm.ModuleRef:
    """The same module, its code fast and small."""
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = True
    builder = llvm.create_pass_builder(target_machine(target), options)
    builder.getModulePassManager().run(module, builder)
    return module


def emit_object(module: llvm.ModuleRef, target: Target) -> bytes:
    """The object file of a module, which LLVM's loader can load in whatever process.

    For each external function that code calls, the loader wants a word of writable memory, which it does not count when
    it reserves memory (`RuntimeDyldImpl::computeTotalAllocSize`, LLVM 20); without room left over it ends the process.
    A writable byte that lies at the start of a page makes it reserve a page more.
    """
    called = set(_CALLED.findall(str(module)))
    externals = sum(function.is_declaration and function.name in called for function in module.functions)
    assert 2 * _WORD_BYTES * externals < _PAGE_BYTES, "calls of more functions than the loader finds room for"
    module.link_in(llvm.parse_assembly(f"@{_ROOM} = global i8 1, align {_PAGE_BYTES}"))
    module.get_global_variable(_ROOM).linkage = "internal"  # what is internal before is not linked in
    return bytes(target_machine(target).emit_object(module))
