"""Kernels: object files loaded into this process by LLVM: where there is no linker, and for users' functions."""

from collections.abc import Iterable, Mapping

import llvmlite.binding as llvm

from sparseeinsum.kernels.building.targets import Target, target_machine
from sparseeinsum.kernels.platforms import NATIVE, this_platform


class LoadedObjects:
    """Machine code of object files; it stays in memory as long as this does."""

    def __init__(self, objects: Iterable[bytes], externals: Mapping[str, int] | None = None) -> None:
        """Load object files.

        Args:
            objects: Their contents.
            externals: Addresses of what they call outside, beside functions of C.
        """
        for name, address in (externals or {}).items():
            llvm.add_symbol(name, address)
        # Its own memory manager keeps the parts of an object together. Without it they may lie further apart than their
        # code can jump, where address space has gaps, as after `import torch`; and LLVM then ends the process.
        machine = target_machine(Target(this_platform(), NATIVE))
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine, use_lmm=True)
        for code in objects:
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address_of(self, symbol: str) -> int:
        """Address of a function; 0 where the objects have none of that name."""
        return int(self._engine.get_function_address(symbol))
