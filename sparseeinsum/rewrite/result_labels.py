"""Rewriting: the order in which a result that rewriting adds has its labels."""

from collections.abc import Iterable, Sequence, Set

from sparseeinsum.language.eingraph import Reference


def labels_in_order(labels: Set[str], read: Iterable[Reference], reader: Sequence[str]) -> tuple[str, ...]:
    """Labels of a result, so that no array is transposed to compute it, and none to read it where there is a choice.

    The labels of each operand stay together, in its order, behind those that all operands have. In a product such as
    N[i, j] * X[j, f], those of N come first: the label that is summed is the last of N and the first of X. In products
    such as U[i, c] * V[f, c], those come first that the reader aggregates: they number the rows of an array in its
    product with a sparse matrix. Then come those that are the first in the result of the reader.

    Args:
        labels: The labels.
        read: What the result is computed from.
        reader: The labels of the result that is computed from this one.
    """
    operands = [tuple(dict.fromkeys(reference.labels)) for reference in read]
    places = {label: place for place, label in enumerate(reader)}

    def priority(operand: tuple[str, ...]) -> tuple[float, ...]:
        own = [position for position, label in enumerate(operand) if label in labels]
        summed = [position for position, label in enumerate(operand) if label not in labels]
        if not own:
            return (1.0,)
        by_reader = float(min(places.get(operand[position], -1) for position in own))
        if not summed:
            return (0.0, -len(own), by_reader)
        return (0.0, sum(own) / len(own) - sum(summed) / len(summed), by_reader)

    shared = frozenset.intersection(*map(frozenset, operands)) if operands else frozenset()
    ordered = sorted(operands, key=priority)
    together = [label for operand in ordered for label in operand if label in labels and label in shared]
    return tuple(dict.fromkeys([*together, *(label for operand in ordered for label in operand if label in labels)]))
