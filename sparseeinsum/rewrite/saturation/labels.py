"""Saturation: one name for each label that goes through several EinSums."""

from collections.abc import Mapping, Sequence

from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.rewrite.unique_names import unused_label

_EinSumLabel = tuple[str, str]  # a result and a label of the EinSum that computes it


def common_names(einsums: Sequence[EinSum]) -> Mapping[_EinSumLabel, str]:
    """Names of all labels of some EinSums; labels of the same axis of a result get the same name.

    No two labels of one EinSum get the same name. Where A[i, j] * A[j, i] is read, the labels of the reader therefore
    have other names than those of A.

    Args:
        einsums: In topological order.

    Returns:
        The names by the result of an EinSum and its label.
    """
    classes: dict[_EinSumLabel, dict[str, str]] = {
        (einsum.output.tensor, label): {einsum.output.tensor: label} for einsum in einsums for label in einsum.labels
    }
    computed = {einsum.output.tensor: einsum for einsum in einsums}
    for einsum in einsums:
        for operand in einsum.operands:
            producer = computed.get(operand.tensor)
            for label, inner in zip(operand.labels, producer.output.labels if producer else (), strict=False):
                _unite(classes, (einsum.output.tensor, label), (operand.tensor, inner))
    names: dict[int, str] = {}
    used: set[str] = set()
    for (_, label), members in classes.items():
        if id(members) not in names:
            names[id(members)] = unused_label(label, used)
            used.add(names[id(members)])
    return {position: names[id(members)] for position, members in classes.items()}


def _unite(classes: dict[_EinSumLabel, dict[str, str]], first: _EinSumLabel, second: _EinSumLabel) -> None:
    members, other_members = classes[first], classes[second]
    if members is not other_members and not members.keys() & other_members.keys():
        members |= other_members
        for position in other_members.items():
            classes[position] = members
