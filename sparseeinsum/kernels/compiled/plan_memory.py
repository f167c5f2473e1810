"""Kernels: finds the plans of contractions in the scratch memory of a call, in int64 words.

`scratch` is an address (int64); descriptors.py defines the start of scratch memory.
"""

from numba import njit, types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.raw_memory import array_at

contraction_plan = load_kernels("contraction_plan")

# Offsets in scratch memory, in words. A key is a length plus 1 (0 in new scratch memory), then the text or extents.
SPEC_KEY = d.REPORT_WORDS
EXTENTS_KEY = SPEC_KEY + 1 + d.MAX_TEXT // 8
_PLAN = EXTENTS_KEY + 1 + contraction_plan.MAX_LABELS
_BATCH_PLAN = _PLAN + contraction_plan.PLAN_SIZE
AFTER_PLANS = _BATCH_PLAN + contraction_plan.PLAN_SIZE


@njit
def plan_of(scratch):
    return array_at(scratch + 8 * _PLAN, contraction_plan.PLAN_SIZE, types.int64)


@njit
def batch_plan_of(scratch):
    return array_at(scratch + 8 * _BATCH_PLAN, contraction_plan.PLAN_SIZE, types.int64)
