"""The command line: charts of numbers by step, as text for terminals and pipes, and as drawings for pages."""

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_PLAIN = " #"
_WIDTH, _HEIGHT = 640, 200  # of a drawing
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 10, 14, 26  # margins of it


def column_chart(values: Sequence[float], height: int = 8, width: int = 60, *, is_plain: bool = False) -> Iterator[str]:
    """Lines of text with a column for every value, from 0 to the greatest one, or to 1 if all are 0.

    Args:
        values: Numbers, 0 or more, in order; at most `width` of them are shown, at even distances.
        height: The number of lines above the axis.
        width: The most columns.
        is_plain: Whether columns are of `#` alone, where blocks cannot be shown.
    """
    marks = _PLAIN if is_plain else _EIGHTHS
    top = max(values) or 1.0
    places = np.linspace(0, len(values) - 1, min(width, len(values))).round().astype(int)
    parts = (np.array(values)[places] / top * height * (len(marks) - 1)).round().astype(int)
    names = [f"{top:.3g}", *[""] * (height - 1), "0"]
    margin = max(map(len, names))
    for line in range(height):
        filled = np.clip(parts - (height - 1 - line) * (len(marks) - 1), 0, len(marks) - 1)
        yield f"{names[line]:>{margin}} {'|' if is_plain else '│'}{''.join(marks[part] for part in filled)}".rstrip()
    yield f"{names[-1]:>{margin}} {'+' if is_plain else '└'}{('-' if is_plain else '─') * len(places)}"


def line_drawing(title: str, values: Sequence[float]) -> str:
    """A drawing (SVG) of values by step, from 0 to the greatest value, in the style of pages with plans."""
    top = max(values) or 1.0
    across = (_WIDTH - _LEFT - _RIGHT) / max(len(values) - 1, 1)
    base, down = _HEIGHT - _BOTTOM, _HEIGHT - _TOP - _BOTTOM
    points = " ".join(
        f"{_LEFT + step * across:.1f},{base - down * value / top:.1f}" for step, value in enumerate(values)
    )
    return (
        f'<svg role="img" aria-label="{escape(title)}" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}">'
        f'<path class="edge" d="M{_LEFT},{_TOP} V{base} H{_WIDTH - _RIGHT}"/>'
        f'<text class="small" x="{_LEFT - 6}" y="{_TOP + 4}" text-anchor="end">{top:.3g}</text>'
        f'<text class="small" x="{_LEFT - 6}" y="{base + 4}" text-anchor="end">0</text>'
        f'<text class="small" x="{_LEFT}" y="{_HEIGHT - 8}">step 0</text>'
        f'<text class="small" x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 8}" text-anchor="end">{len(values) - 1}</text>'
        f'<polyline class="edge changed" points="{points}"/></svg>'
    )
