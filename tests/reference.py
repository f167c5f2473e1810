"""The oracle: EinSums by numpy on dense arrays, as their definition says."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.language.eingraph import EinSum, Program
from sparseeinsum.language.scalar import evaluate

_FOLDS: dict[str, Callable[..., NDArray[Any]]] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


def evaluate_program(program: Program, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Every tensor of a program, computed on dense arrays."""
    known = dict(inputs)
    for einsum in program.einsums:
        known[einsum.output.tensor] = evaluate_einsum(einsum, known)
    return known


def evaluate_einsum(einsum: EinSum, known: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """One EinSum: every operand spread over all labels, joined, then folded over those that the result lacks."""
    labels = einsum.labels
    bounds: dict[str, int] = {}
    for operand in einsum.operands:
        bounds |= dict(zip(operand.labels, known[operand.tensor].shape, strict=True))
    shape = tuple(bounds[label] for label in labels)
    spread = [_spread(known[operand.tensor], operand.labels, labels, shape) for operand in einsum.operands]
    joined = np.broadcast_to(evaluate(einsum.join, spread), shape)
    axes = tuple(range(len(einsum.output.labels), len(labels)))
    with np.errstate(all="ignore"):
        folded = joined if not axes else _FOLDS[einsum.aggregate or "sum"](joined, axis=axes)
    return np.asarray(folded)


def _spread(array: NDArray[Any], own: tuple[str, ...], labels: tuple[str, ...], shape: tuple[int, ...]) -> NDArray[Any]:
    indices = np.indices(shape, sparse=True) if shape else ()
    return array[tuple(indices[labels.index(label)] for label in own)]
