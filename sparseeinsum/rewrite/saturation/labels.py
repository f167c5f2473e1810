"""Saturation: EinSums that read one another in, one name for each label that goes through several of them out."""

from collections.abc import Mapping, Sequence

from sparseeinsum.language.eingraph import EinSum

_Place = tuple[str, str]  # a result, and a label of the EinSum that computes it


def common_names(einsums: Sequence[EinSum]) -> Mapping[_Place, str]:
    """Names of all labels of some EinSums, the same for those that name the same axis of a result.

    No two labels of an EinSum get one name, as where A[i, j] * A[j, i] is read: then a reader's are other names.

    Args:
        einsums: In topological order.
    """
    classes: dict[_Place, dict[str, str]] = {
        (each.output.tensor, label): {each.output.tensor: label} for each in einsums for label in each.labels
    }
    computed = {each.output.tensor: each for each in einsums}
    for einsum in einsums:
        for operand in einsum.operands:
            producer = computed.get(operand.tensor)
            for label, inner in zip(operand.labels, producer.output.labels if producer else (), strict=False):
                _unite(classes, (einsum.output.tensor, label), (operand.tensor, inner))
    names: dict[int, str] = {}
    taken: set[str] = set()
    for (_, label), found in classes.items():
        if id(found) not in names:
            names[id(found)] = _free(label, taken)
    return {place: names[id(found)] for place, found in classes.items()}


def _unite(classes: dict[_Place, dict[str, str]], one: _Place, other: _Place) -> None:
    first, second = classes[one], classes[other]
    if first is not second and not first.keys() & second.keys():
        first |= second
        for place in second.items():
            classes[place] = first


def _free(label: str, taken: set[str]) -> str:
    name, number = label, 1
    while name in taken:
        number += 1
        name = f"{label}{number}"
    taken.add(name)
    return name
