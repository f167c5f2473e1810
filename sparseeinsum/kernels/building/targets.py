"""Kernels: defines the platforms and processors that code is compiled for, in LLVM's terms."""

from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

from sparseeinsum.kernels.platforms import NATIVE, Platform

_TRIPLES = {
    "linux_amd64": "x86_64-unknown-linux-gnu",
    "linux_arm64": "aarch64-unknown-linux-gnu",
    "osx_arm64": "arm64-apple-macosx11.0.0",
    "osx_amd64": "x86_64-apple-macosx11.0.0",
    "windows_amd64": "x86_64-pc-windows-msvc",
}
_PROCESSORS = {("osx_arm64", "generic"): "apple-m1"}  # the oldest one; other names are those of LLVM
_BASELINES = {"x86_64": "x86-64", "aarch64": "generic", "arm64": "apple-m1"}


@dataclass(frozen=True, slots=True)
class Target:
    """A platform and one of its processors; without a processor, code runs on all of them."""

    platform: Platform
    processor: str | None = None

    def __str__(self) -> str:
        return f"{self.platform.name}:{self.processor or 'any'}"

    @property
    def triple(self) -> str:
        """The name of the platform in LLVM."""
        return _TRIPLES[self.platform.name]

    @property
    def description(self) -> tuple[str, str]:
        """LLVM's name of the processor, and its features beyond those of the name, in LLVM's notation."""
        if self.processor is None:
            return _BASELINES[self.triple.partition("-")[0]], ""
        if self.processor == NATIVE:
            return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
        return _PROCESSORS.get((self.platform.name, self.processor), self.processor), ""


@cache
def target_machine(target: Target) -> llvm.TargetMachine:
    """Return LLVM's generator of position-independent code for a target."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()
    name, features = target.description
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=name, features=features, opt=3, reloc="pic", codemodel="small"
    )
