"""Kernels: knows the features of processors, and writes code that checks for them when a library is loaded.

A library that was built on another machine must not run instructions that the processor does not have.
"""

import llvmlite.binding as llvm

from sparseeinsum.errors import KernelsError
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.platforms import NATIVE, Platform

# The features that each level of x86-64 adds, by LLVM's names: https://gitlab.com/x86-psABIs/x86-64-ABI
_LEVELS = {
    "x86-64-v2": ("cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"),
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "x86-64-v4": ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"),
}

# The CPUID leaf, register and bit of every feature that LLVM's code may use, by LLVM's names.
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
# The bit of CPUID for XGETBV, and the bits of XCR0, in which the operating system says which registers it saves.
_XSAVE, _SAVES_AVX, _SAVES_AVX512 = 27, 0x6, 0xE6


def features(target: Target) -> frozenset[str]:
    """Return the features that code for a target may use beyond the baseline, by LLVM's names."""
    if target.processor == NATIVE:
        return frozenset(name for name, has in llvm.get_host_cpu_features().items() if has)
    levels = list(_LEVELS)
    if target.processor not in levels:
        return frozenset()
    return frozenset(name for level in levels[: levels.index(target.processor) + 1] for name in _LEVELS[level])


def has_wide_vectors(target: Target) -> bool:
    """Return whether code for a target may use vectors of 64 bytes."""
    return "avx512f" in features(target)


def best_level(platform: Platform) -> str:
    """Return the highest level of this machine's platform whose features its processor has.

    Raises:
        KernelsError: The processor lacks features of the lowest level.
    """
    available = features(Target(platform, NATIVE))
    fitting = [level for level in platform.levels if features(Target(platform, level)) <= available]
    if not fitting:
        raise KernelsError(
            f"this processor is older than {platform.levels[0]}, the lowest level that kernels are compiled for"
        )
    return fitting[-1]


def check_code(function: str, target: Target) -> str:
    """Return LLVM IR of `i64 @function()`: 1 if the processor that runs it has all features of a target, else 0."""
    required = features(target)
    conditions = []
    if target.platform.is_x86:
        for query in _QUERIES:
            mask = sum(1 << bit for name, bit in _BITS[query].items() if name in required)
            conditions += [_has_bits(*query, mask)] if mask else []
        saved = _SAVES_AVX512 if "avx512f" in required else _SAVES_AVX if "avx" in required else 0
        conditions += [_has_bits(1, "ecx", 1 << _XSAVE), _saves_registers(saved)] if saved else []
    blocks = [
        f"check{index}:\n{condition.format(index)}\n  br i1 %fits{index}, label %check{index + 1}, label %lacking"
        for index, condition in enumerate(conditions)
    ]
    return f"""define internal i64 @{function}() {{
  br label %check0
{chr(10).join(blocks)}
check{len(conditions)}:
  ret i64 1
lacking:
  ret i64 0
}}"""


def _has_bits(leaf: int, register: str, mask: int) -> str:
    index = _REGISTERS.index(register)
    return f"""  %words{{0}} = call {{{{ i32, i32, i32, i32 }}}} asm sideeffect "cpuid",
      "={{{{ax}}}},={{{{bx}}}},={{{{cx}}}},={{{{dx}}}},{{{{ax}}}},{{{{cx}}}}"(i32 {leaf}, i32 0)
  %word{{0}} = extractvalue {{{{ i32, i32, i32, i32 }}}} %words{{0}}, {index}
  %masked{{0}} = and i32 %word{{0}}, {mask}
  %fits{{0}} = icmp eq i32 %masked{{0}}, {mask}"""


def _saves_registers(mask: int) -> str:
    return f"""  %words{{0}} = call {{{{ i32, i32 }}}} asm sideeffect "xgetbv",
      "={{{{ax}}}},={{{{dx}}}},{{{{cx}}}}"(i32 0)
  %word{{0}} = extractvalue {{{{ i32, i32 }}}} %words{{0}}, 0
  %masked{{0}} = and i32 %word{{0}}, {mask}
  %fits{{0}} = icmp eq i32 %masked{{0}}, {mask}"""
