"""Picture: boxes and links as an SVG drawing."""

from collections.abc import Iterator
from html import escape

from sparseeinsum.plans.picture.cards import Card, Deck, Line, Link, Meter
from sparseeinsum.plans.picture.graph_layout import Box, DrawnNode, Edge, Point, place

_MARGIN = 12.0
_PADDING = 14.0
_BAR_HEIGHT = 5.0
# Width of a character and height of a line in pixels, for the monospaced font of each style in page.css.
_CHARACTER = {"notation": 7.9, "small": 6.7}
_HEIGHT = {"notation": 19.0, "small": 16.0}
_NARROWEST = 130.0
_LEAST_SCALE = 0.8  # to which a drawing shrinks with its window


def draw(deck: Deck, title: str) -> str:
    """The drawing as an SVG element for a page with page.css."""
    nodes = [DrawnNode(card.name, card.layer, _width(card), _height(card)) for card in deck.cards]
    edges = [Edge(link.source, link.target, link.weight) for link in deck.links]
    placement = place(nodes, edges)
    width, height = placement.width + 2 * _MARGIN, placement.height + 2 * _MARGIN
    paths = [_path(link, route) for link, route in zip(deck.links, placement.routes, strict=True)]
    cards = [_card(card, placement.boxes[card.name]) for card in deck.cards]
    return "\n".join(
        [
            f'<svg role="img" aria-label="{escape(title)}" '
            f'style="width: {width:.0f}px; min-width: {_LEAST_SCALE * width:.0f}px" '
            f'viewBox="{-_MARGIN:.0f} {-_MARGIN:.0f} {width:.0f} {height:.0f}">',
            *(_arrow_head(name) for name in ("same", "changed")),
            *paths,
            *cards,
            "</svg>",
        ]
    )


def _width(card: Card) -> float:
    lines = (*card.lines, *(meter.line for meter in card.meters))
    return max(_NARROWEST, *(line.length * _CHARACTER[line.style] for line in lines)) + 2 * _PADDING


def _height(card: Card) -> float:
    lines = sum(_HEIGHT[line.style] for line in card.lines)
    return lines + sum(_meter_height(meter) for meter in card.meters) + 1.25 * _PADDING


def _meter_height(meter: Meter) -> float:
    return _HEIGHT[meter.line.style] + _BAR_HEIGHT + 6


def _arrow_head(name: str) -> str:
    return (
        f'<marker id="arrow-{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="90">'
        f'<path class="head {name}" d="M0 0 8 4 0 8z"/></marker>'
    )


def _path(link: Link, route: tuple[Point, ...]) -> str:
    (x, y), *others = route
    commands = [f"M{x:.1f} {y:.1f}"]
    for index, (end_x, end_y) in enumerate(others):
        if index % 2 == 0:
            commands.append(f"V{end_y:.1f}")
        else:
            middle = (y + end_y) / 2
            commands.append(f"C{x:.1f} {middle:.1f} {end_x:.1f} {middle:.1f} {end_x:.1f} {end_y:.1f}")
        x, y = end_x, end_y
    kind = "changed" if link.is_changed else "same"
    return f'<path class="edge {kind}" marker-end="url(#arrow-{kind})" d="{" ".join(commands)}"/>'


def _card(card: Card, box: Box) -> str:
    return "\n".join(
        [
            f'<g class="card {card.kind}" transform="translate({box.x:.1f} {box.y:.1f})">',
            f'<rect class="face" width="{box.width:.1f}" height="{box.height:.1f}" rx="8"/>',
            *_inside(card, box.width),
            "</g>",
        ]
    )


def _inside(card: Card, width: float) -> Iterator[str]:
    y = 0.5 * _PADDING
    for line in card.lines:
        y += _HEIGHT[line.style]
        yield _text(line, y - 4)
    for meter in card.meters:
        y += _HEIGHT[meter.line.style] + 3
        yield _text(meter.line, y - 4)
        yield from _bar(meter, y + 1, width - 2 * _PADDING)
        y += _BAR_HEIGHT + 3


def _text(line: Line, y: float) -> str:
    spans = "".join(
        f'<tspan class="{style}">{escape(text)}</tspan>' if style else escape(text) for text, style in line.runs
    )
    return f'<text class="{line.style}" x="{_PADDING:.0f}" y="{y:.1f}">{spans}</text>'


def _bar(meter: Meter, y: float, width: float) -> Iterator[str]:
    yield f'<rect class="track" x="{_PADDING}" y="{y:.1f}" width="{width:.1f}" height="{_BAR_HEIGHT}"/>'
    x = _PADDING
    for share, style in meter.shares:
        if share > 0:
            yield f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{share * width:.1f}" height="{_BAR_HEIGHT}"/>'
        x += share * width
