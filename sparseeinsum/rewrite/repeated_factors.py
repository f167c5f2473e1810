"""Rewriting: functions of one operand that a sum of products would compute again for every pair of values.

sum[n](exp(H[i, n]) * W[n, m]) computes exp once for every m. With E[i, n] = exp(H[i, n]) it is a product of matrices.
"""

import math
from collections.abc import Sequence

from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.inference import bounds_of
from sparseeinsum.language.scalar import operands_of
from sparseeinsum.operators.expressions import Operand, Scalar
from sparseeinsum.rewrite.annotated_graphs import AnnotatedTensor, GraphAnnotator
from sparseeinsum.rewrite.chains import INEXACT_DTYPES, Chain
from sparseeinsum.rewrite.einsum_parts import labels_among, part_of

_MANY = 8  # times that a value is computed
_WORTH = 1e5  # values computed again, from which on one more EinSum pays


def repeated_factors(
    einsum: EinSum, chain: Chain, aggregate: str | None, references: Sequence[Reference], annotator: GraphAnnotator
) -> frozenset[int]:
    """The positions of factors that are better computed on their own, before they are multiplied.

    Where an operand is sparse, such a factor is, too. All factors have one inexact dtype, so that each is computed in
    it in either case.

    Args:
        einsum: The EinSum of which the chain is a part.
        chain: The factors, expressions of `references`.
        aggregate: The aggregate of the chain.
        references: The operands of `einsum`, and results of its parts.
        annotator: Has them.
    """
    functions = [position for position, factor in enumerate(chain.factors) if _is_function(factor)]
    if aggregate != "sum" or chain.operator != "mul" or not functions:
        return frozenset()
    results = [_result(einsum, factor, references, annotator) for factor in chain.factors]
    dtypes = {result.tensor.dtype for result in results}
    if len(dtypes) > 1 or not dtypes <= INEXACT_DTYPES:
        return frozenset()
    bounds = bounds_of(einsum, annotator.plain_tensors())
    labels = [labels_among(factor, references) for factor in chain.factors]
    entries = [result.statistics.entries for result in results]
    repeated = set()
    for position in functions:
        (operand,) = operands_of(chain.factors[position])
        if entries[position] > annotator.tensors[references[operand].tensor].statistics.entries:
            continue  # a function that is not 0 where the operand is
        values, own = entries[position], labels[position]
        pairs = [
            values * entries[other] / max(math.prod(bounds[label] for label in own & labels[other]), 1)
            for other in range(len(labels))
            if other != position
        ]
        if max(pairs) >= max(_MANY * values, values + _WORTH):
            repeated.add(position)
    return frozenset(repeated)


def _is_function(factor: Scalar) -> bool:
    return not isinstance(factor, Operand) and len(operands_of(factor)) == 1


def _result(
    einsum: EinSum, factor: Scalar, references: Sequence[Reference], annotator: GraphAnnotator
) -> AnnotatedTensor:
    labels = labels_among(factor, references)
    output = Reference(einsum.output.tensor, tuple(label for label in einsum.labels if label in labels))
    return annotator.result_of(part_of(einsum, references, output, factor, None))
