"""Kernels: processors that machine code is compiled for, and code that asks the one at hand what it has.

A library that is built here and runs elsewhere must not meet an instruction that the processor there does not know.
"""

import platform
from collections.abc import Iterable

import llvmlite.binding as llvm

NATIVE = "native"  # the processor of this machine

# Levels of x86-64 by what each adds: https://gitlab.com/x86-psABIs/x86-64-ABI
_LEVELS = {
    "x86-64": (),
    "x86-64-v2": ("cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"),
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "x86-64-v4": ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"),
}

PROCESSORS = (NATIVE, *_LEVELS)

UNFIT = (  # what a library says where `check_code` finds that it cannot run
    "the library of sparseeinsum was built for another processor and cannot run on this one; "
    "build it on this machine, or with --processor x86-64-v2"
)

# Where CPUID tells of a feature, by LLVM's names: (leaf, register, bit); what LLVM's code never uses is left out.
_QUERIES = ((1, "ecx"), (7, "ebx"), (7, "ecx"), (0x80000001, "ecx"))
_REGISTERS = ("eax", "ebx", "ecx", "edx")
_BITS = {
    (1, "ecx"): {
        "sse3": 0,
        "pclmul": 1,
        "ssse3": 9,
        "fma": 12,
        "cx16": 13,
        "sse4.1": 19,
        "sse4.2": 20,
        "movbe": 22,
        "popcnt": 23,
        "aes": 25,
        "avx": 28,
        "f16c": 29,
    },
    (7, "ebx"): {
        "bmi": 3,
        "avx2": 5,
        "bmi2": 8,
        "avx512f": 16,
        "avx512dq": 17,
        "adx": 19,
        "avx512ifma": 21,
        "avx512cd": 28,
        "sha": 29,
        "avx512bw": 30,
        "avx512vl": 31,
    },
    (7, "ecx"): {
        "avx512vbmi": 1,
        "avx512vbmi2": 6,
        "gfni": 8,
        "vaes": 9,
        "vpclmulqdq": 10,
        "avx512vnni": 11,
        "avx512bitalg": 12,
        "avx512vpopcntdq": 14,
    },
    (0x80000001, "ecx"): {"lzcnt": 5, "sse4a": 6},
}
# Bits of XCR0, in which the operating system says whose registers it keeps.
_XSAVE, _KEEPS_AVX, _KEEPS_AVX512 = 27, 0x6, 0xE6


def is_x86() -> bool:
    """Whether this machine is one of those that CPUID and the levels are of."""
    return platform.machine() in ("x86_64", "AMD64")


def target(processor: str) -> tuple[str, str]:
    """LLVM's name of a processor of PROCESSORS, and its features in LLVM's notation, those beside the name's own."""
    if processor == NATIVE:
        return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return processor, ""


def features(processor: str) -> frozenset[str]:
    """What code for a processor may use beyond the least of x86-64, by LLVM's names."""
    if processor == NATIVE:
        return frozenset(name for name, has in llvm.get_host_cpu_features().items() if has)
    levels = list(_LEVELS)
    return frozenset(name for level in levels[: levels.index(processor) + 1] for name in _LEVELS[level])


def check_code(needed: Iterable[str]) -> str:
    """LLVM IR of `i1 @sparseeinsum_processor_fits()`: whether the processor that runs it has these features."""
    wanted = set(needed)
    conditions = []
    if is_x86():
        for query in _QUERIES:
            mask = sum(1 << bit for name, bit in _BITS[query].items() if name in wanted)
            conditions += [_has_bits(*query, mask)] if mask else []
        kept = _KEEPS_AVX512 if "avx512f" in wanted else _KEEPS_AVX if "avx" in wanted else 0
        conditions += [_has_bits(1, "ecx", 1 << _XSAVE), _keeps_registers(kept)] if kept else []
    blocks = [
        f"check{index}:\n{condition.format(index)}\n  br i1 %fits{index}, label %check{index + 1}, label %lacking"
        for index, condition in enumerate(conditions)
    ]
    return f"""define hidden i1 @sparseeinsum_processor_fits() {{
  br label %check0
{chr(10).join(blocks)}
check{len(conditions)}:
  ret i1 1
lacking:
  ret i1 0
}}"""


def _has_bits(leaf: int, register: str, mask: int) -> str:
    place = _REGISTERS.index(register)
    return f"""  %words{{0}} = call {{{{ i32, i32, i32, i32 }}}} asm sideeffect "cpuid",
      "={{{{ax}}}},={{{{bx}}}},={{{{cx}}}},={{{{dx}}}},{{{{ax}}}},{{{{cx}}}}"(i32 {leaf}, i32 0)
  %word{{0}} = extractvalue {{{{ i32, i32, i32, i32 }}}} %words{{0}}, {place}
  %held{{0}} = and i32 %word{{0}}, {mask}
  %fits{{0}} = icmp eq i32 %held{{0}}, {mask}"""


def _keeps_registers(mask: int) -> str:
    return f"""  %words{{0}} = call {{{{ i32, i32 }}}} asm sideeffect "xgetbv",
      "={{{{ax}}}},={{{{dx}}}},{{{{cx}}}}"(i32 0)
  %word{{0}} = extractvalue {{{{ i32, i32 }}}} %words{{0}}, 0
  %held{{0}} = and i32 %word{{0}}, {mask}
  %fits{{0}} = icmp eq i32 %held{{0}}, {mask}"""
