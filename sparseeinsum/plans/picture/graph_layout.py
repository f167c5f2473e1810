"""Picture: places boxes in layers, with edges between them, so that nothing overlaps.

Source: Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system structures" (1981): an edge
over several layers passes through a place of its own in each, layers are ordered by barycentres, and then spaced.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

_SWEEPS = 24
_RELAXATIONS = 60
_GAP = 26.0  # between boxes of a layer, in pixels
_EDGE_GAP = 16.0  # beside an edge that passes
_LAYER_GAP = 38.0
_PASSAGE = "passage"

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A box to place.

    Attributes:
        name: Of its own.
        layer: The lower the number, the higher it lies.
        width: In pixels, as all sizes.
        height: Of the box.
    """

    name: str
    layer: int
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Edge:
    """A connection from a box to one in a lower layer.

    Attributes:
        source: Name of the upper box.
        target: Name of the lower one.
        weight: How much it matters that it runs straight down.
    """

    source: str
    target: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Box:
    """Where a box lies: its left upper corner, and its size."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """Where everything lies.

    Attributes:
        boxes: By the name of the node.
        routes: For every edge its points: from one to the next by turns straight down and along a curve.
        width: Of all of it.
        height: Of all of it.
    """

    boxes: Mapping[str, Box]
    routes: tuple[tuple[Point, ...], ...]
    width: float
    height: float


def place(nodes: Sequence[DrawnNode], edges: Sequence[Edge]) -> GraphLayout:
    """Place boxes so that none overlaps another or an edge, with few crossings and mostly straight edges."""
    graph = _Layers.of(nodes, edges)
    graph.order()
    centers = graph.centers()
    tops, bottoms = _rows(graph)
    left = min((centers[name] - graph.widths[name] / 2 for name in centers), default=0.0)
    middles = {name: center - left for name, center in centers.items()}
    boxes = {}
    for node in nodes:
        row = graph.row_of[node.name]
        y = tops[row] + (bottoms[row] - tops[row] - node.height) / 2
        boxes[node.name] = Box(middles[node.name] - node.width / 2, y, node.width, node.height)
    width = max((middles[name] + graph.widths[name] / 2 for name in middles), default=0.0)
    routes = tuple(_routes(graph, edges, boxes, middles, list(zip(tops, bottoms, strict=True))))
    return GraphLayout(boxes, routes, width, bottoms[-1] if bottoms else 0.0)


def _rows(graph: "_Layers") -> tuple[list[float], list[float]]:
    """The upper and the lower end of every layer."""
    tops, bottoms = [], []
    y = 0.0
    for row in graph.rows:
        tops.append(y)
        bottoms.append(y + max(graph.heights[name] for name in row))
        y = bottoms[-1] + _LAYER_GAP
    return tops, bottoms


def _routes(
    graph: "_Layers",
    edges: Sequence[Edge],
    boxes: Mapping[str, Box],
    middles: Mapping[str, float],
    rows: Sequence[tuple[float, float]],
) -> Iterator[tuple[Point, ...]]:
    arriving: dict[str, list[int]] = {}
    for index, edge in enumerate(edges):
        arriving.setdefault(edge.target, []).append(index)
    for indices in arriving.values():
        indices.sort(key=lambda index: middles[graph.paths[index][-2]])
    for index, edge in enumerate(edges):
        source, *passed, target = graph.paths[index]
        start, end = boxes[source], boxes[target]
        others = arriving[edge.target]
        share = (others.index(index) + 1) / (len(others) + 1)
        points = [(middles[source], start.y + start.height), (middles[source], rows[graph.row_of[source]][1])]
        for name in passed:
            points += [(middles[name], y) for y in rows[graph.row_of[name]]]
        port = end.x + end.width * share
        yield (*points, (port, rows[graph.row_of[target]][0]), (port, end.y))


@dataclass(slots=True)
class _Layers:
    """Names by layer: of boxes, and of the passages of edges that go further than to the next layer."""

    rows: list[list[str]]
    row_of: dict[str, int]
    widths: dict[str, float]
    heights: dict[str, float]
    paths: list[list[str]] = field(default_factory=list)
    neighbours: dict[str, list[tuple[str, float]]] = field(default_factory=dict)

    @classmethod
    def of(cls, nodes: Sequence[DrawnNode], edges: Sequence[Edge]) -> "_Layers":
        """The layers that have boxes, numbered from 0."""
        numbers = {layer: number for number, layer in enumerate(sorted({node.layer for node in nodes}))}
        graph = cls(
            [[] for _ in numbers],
            {},
            {node.name: node.width for node in nodes},
            {node.name: node.height for node in nodes},
        )
        for node in nodes:
            graph._add(node.name, numbers[node.layer])
        for index, edge in enumerate(edges):
            graph._connect(index, edge)
        return graph

    def _add(self, name: str, row: int) -> None:
        self.rows[row].append(name)
        self.row_of[name] = row
        self.neighbours[name] = []

    def _connect(self, index: int, edge: Edge) -> None:
        path = [edge.source]
        for row in range(self.row_of[edge.source] + 1, self.row_of[edge.target]):
            name = f"{_PASSAGE} {index} {row}"
            self.widths[name] = self.heights[name] = 0.0
            self._add(name, row)
            path.append(name)
        path.append(edge.target)
        weight = edge.weight / (len(path) - 1) ** 2  # a long edge bends rather than what lies between
        for upper, lower in pairwise(path):
            self.neighbours[upper].append((lower, weight))
            self.neighbours[lower].append((upper, weight))
        self.paths.append(path)

    def order(self) -> None:
        """Order every layer by the barycentres of its neighbours; the order with the fewest crossings stays."""
        best, fewest = [list(row) for row in self.rows], self._crossings()
        for sweep in range(_SWEEPS):
            towards = -1 if sweep % 2 == 0 else 1
            for row in self.rows if towards < 0 else reversed(self.rows):
                self._order_row(row, towards)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
        self.rows = best

    def _order_row(self, row: list[str], towards: int) -> None:
        position = {name: place for other_row in self.rows for place, name in enumerate(other_row)}
        barycentres = {}
        for name in row:
            places = [position[other] for other, _ in self._neighbours_towards(name, towards)]
            barycentres[name] = sum(places) / len(places) if places else position[name]
        row.sort(key=lambda name: barycentres[name])

    def _neighbours_towards(self, name: str, towards: int) -> list[tuple[str, float]]:
        """The neighbours in the layer above (`towards` is -1) or below (1), with the weights of their edges."""
        row = self.row_of[name] + towards
        return [(other, weight) for other, weight in self.neighbours[name] if self.row_of[other] == row]

    def _crossings(self) -> int:
        """The number of pairs of edges that cross."""
        position = {name: place for row in self.rows for place, name in enumerate(row)}
        count = 0
        for row in self.rows:
            lines = [
                (position[name], position[other]) for name in row for other, _ in self._neighbours_towards(name, 1)
            ]
            count += sum((a - c) * (b - d) < 0 for a, b in lines for c, d in lines)
        return count // 2

    def centers(self) -> dict[str, float]:
        """The centers of boxes and passages, as close to those of their neighbours as order and sizes allow."""
        centers: dict[str, float] = {}
        for row in self.rows:
            centers |= dict(zip(row, _spaced([0.0] * len(row), [1.0] * len(row), self._distances(row)), strict=True))
        for turn in range(_RELAXATIONS):
            for row in self.rows if turn % 2 == 0 else reversed(self.rows):
                targets, weights = zip(*(self._target(name, centers) for name in row), strict=True)
                centers |= dict(zip(row, _spaced(targets, weights, self._distances(row)), strict=True))
        for path in self.paths:
            self._straighten(path, centers)
        return centers

    def _straighten(self, path: Sequence[str], centers: dict[str, float]) -> None:
        """Move the passages of an edge so that it bends as rarely as the boxes next to it allow."""
        run: list[str] = []
        low, high = -math.inf, math.inf
        for name in path[1:-1]:
            left, right = self._free(name, centers)
            if max(low, left) > min(high, right):
                self._align(run, centers[path[-1]], (low, high), centers)
                run, low, high = [], left, right
            run.append(name)
            low, high = max(low, left), min(high, right)
        self._align(run, centers[path[-1]], (low, high), centers)

    def _free(self, name: str, centers: Mapping[str, float]) -> tuple[float, float]:
        """The least and the greatest center that a passage can have."""
        row = self.rows[self.row_of[name]]
        place = row.index(name)
        before = [centers[other] + self._distance(other, name) for other in row[max(place - 1, 0) : place]]
        after = [centers[other] - self._distance(name, other) for other in row[place + 1 : place + 2]]
        return max(before, default=-math.inf), min(after, default=math.inf)

    def _align(self, run: list[str], target: float, free: tuple[float, float], centers: dict[str, float]) -> None:
        for name in run:
            centers[name] = min(max(target, free[0]), free[1])

    def _target(self, name: str, centers: Mapping[str, float]) -> tuple[float, float]:
        """The best center by the neighbours alone, and its weight."""
        neighbours = self.neighbours[name]
        total = sum(weight for _, weight in neighbours)
        if not total:
            return centers[name], 1.0
        return sum(weight * centers[other] for other, weight in neighbours) / total, total

    def _distances(self, row: Sequence[str]) -> list[float]:
        """The least distances between the centers of adjacent boxes."""
        return [self._distance(first, second) for first, second in pairwise(row)]

    def _distance(self, first: str, second: str) -> float:
        return (self.widths[first] + self.widths[second]) / 2 + _gap(first, second)


def _gap(first: str, second: str) -> float:
    return _EDGE_GAP if _PASSAGE in (first.split(" ")[0], second.split(" ")[0]) else _GAP


def _spaced(targets: Sequence[float], weights: Iterable[float], distances: Sequence[float]) -> list[float]:
    """Numbers at least `distances` apart whose weighted squared differences from `targets` are least.

    Without the distances before it, each number must be at least the one before. This is isotonic regression, which
    pools neighbours that are out of order.

    >>> _spaced([5.0, 5.0, 30.0], [1.0, 1.0, 1.0], [4.0, 4.0])
    [3.0, 7.0, 30.0]
    """
    offsets = [0.0]
    for distance in distances:
        offsets.append(offsets[-1] + distance)
    pools: list[tuple[float, float, int]] = []  # (mean, weight, count)
    for target, weight, offset in zip(targets, weights, offsets, strict=False):
        mean, total, count = target - offset, weight, 1
        while pools and pools[-1][0] > mean:
            before, heavy, size = pools.pop()
            mean = (before * heavy + mean * total) / (heavy + total)
            total, count = heavy + total, size + count
        pools.append((mean, total, count))
    spread = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(spread, offsets, strict=True)]
