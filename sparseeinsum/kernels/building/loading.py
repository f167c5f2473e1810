"""Kernels: loads object files into this process with LLVM, for users' functions and where there is no linker."""

from collections.abc import Iterable, Mapping

import llvmlite.binding as llvm

from sparseeinsum.kernels.building.targets import Target, target_machine
from sparseeinsum.kernels.platforms import NATIVE, this_platform


class LoadedObjects:
    """Machine code that was loaded from object files; it stays in memory as long as this object lives."""

    def __init__(self, objects: Iterable[bytes], externals: Mapping[str, int] | None = None) -> None:
        """Load object files into this process.

        Args:
            objects: The contents of the object files.
            externals: The addresses of external functions that they call, other than functions of C.
        """
        for name, address in (externals or {}).items():
            llvm.add_symbol(name, address)
        # llvmlite's memory manager keeps the sections of an object together. Without it they may be further apart than
        # code can jump, where the address space has gaps, as after `import torch`; then LLVM ends the process.
        machine = target_machine(Target(this_platform(), NATIVE))
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine, use_lmm=True)
        for code in objects:
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address_of(self, symbol: str) -> int:
        """Return the address of a function; 0 if the objects define none of that name."""
        return int(self._engine.get_function_address(symbol))
