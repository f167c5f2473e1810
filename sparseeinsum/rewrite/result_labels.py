"""Rewriting: the order in which a result that rewriting adds has its labels."""

from collections.abc import Iterable, Sequence, Set

from sparseeinsum.language.eingraph import Reference


def labels_in_order(labels: Set[str], read: Iterable[Reference], reader: Sequence[str]) -> tuple[str, ...]:
    """Labels of a result, so that no array is transposed to compute it, and none to read it where there is a choice.

    The labels of each operand stay together, in its order. Without a sum, those of the operand with most labels come
    first. In a sum, labels that all operands have come first. In a product such as N[i, j] * X[j, f], those of N come
    before those of X: the label that is summed is the last of N and the first of X. In products such as
    U[i, c] * V[f, c], those come first that the reader aggregates: they number the rows of an array in its product with
    a sparse matrix. Then come those that are the first in the result of the reader.

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

    ordered = [label for operand in sorted(operands, key=priority) for label in operand if label in labels]
    is_sum = any(label not in labels for operand in operands for label in operand)
    shared = frozenset.intersection(*map(frozenset, operands)) if is_sum else frozenset()
    return tuple(dict.fromkeys([*(label for label in ordered if label in shared), *ordered]))
