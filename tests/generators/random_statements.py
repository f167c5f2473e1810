"""Statements over tensors of three labels at most, as text: what random estimates are made of."""

from hypothesis import strategies as st


def draw_statements(data: st.DataObject, labels_of: dict[str, list[str]]) -> str:
    """A program of three statements on the tensors A, B and C, whose labels are given; adds those of the results."""
    lines = []
    for result, (first, second) in {"X": ("A", "B"), "Y": ("X", "C"), "Z": ("X", "Y")}.items():
        used = dict.fromkeys([*labels_of[first], *labels_of[second]])
        labels_of[result] = [label for label in used if data.draw(st.booleans())]
        join = data.draw(st.sampled_from(["{} * {}", "{} + {}", "{} * ({} + 1)"]))
        body = join.format(*(f"{name}[{', '.join(labels_of[name])}]" for name in (first, second)))
        folded = f"sum({body})" if len(labels_of[result]) < len(used) else body
        lines.append(f"{result}[{', '.join(labels_of[result])}] = {folded}")
    return "\n".join(lines)
