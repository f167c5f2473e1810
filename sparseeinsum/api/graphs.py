"""Graphs whose nodes have features, as arrays of numpy alone, and a graph network over them: what the demo runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.errors import DataError

GCN = """
# Two layers of a graph convolutional network (SparseEinSum, section 9.2): normalise the adjacency,
# aggregate neighbours, transform, activate.
T0[i, k] = sum(D[i, j] * A[j, k])
T1[i, l] = sum(T0[i, k] * D[k, l])
T2[i, m] = sum(T1[i, l] * X[l, m])
T3[i, n] = sum(T2[i, m] * W1[m, n])
H[i, n]  = sigmoid(T3[i, n])
T4[i, n] = sum(T1[i, l] * H[l, n])
T5[i, o] = sum(T4[i, n] * W2[n, o])
Y[i, o]  = sigmoid(T5[i, o])
"""


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of a sparse matrix.

    Attributes:
        coordinates: (2, entries), int64.
        values: (entries,), float64.
        shape: Of the matrix.
    """

    coordinates: NDArray[np.int64]
    values: NDArray[np.float64]
    shape: tuple[int, int]


@dataclass(frozen=True, slots=True)
class FeaturedGraph:
    """A graph whose nodes have sparse features.

    Attributes:
        name: What to call it.
        adjacency: (nodes, nodes), 1 for every directed edge, no self loops.
        features: (nodes, features).
    """

    name: str
    adjacency: Entries
    features: Entries

    @property
    def summary(self) -> str:
        """Its sizes in a line."""
        nodes, features = self.features.shape
        edges, words = len(self.adjacency.values), len(self.features.values)
        return f"{self.name}: {nodes:,} nodes, {edges:,} edges, {features:,} features ({words:,} set)"


def citation_graph(
    nodes: int = 2708, edges: int = 10556, features: int = 1433, entries: int = 49216, seed: int = 0, name: str = "twin"
) -> FeaturedGraph:
    """A graph like a citation network: both directions of every edge, degrees and words by a power law.

    Args:
        nodes: How many.
        edges: Directed edges, an even number.
        features: Words that a node may have.
        entries: Words that all nodes have together.
        seed: Of the generator.
        name: What to call it.
    """
    rng = np.random.default_rng(seed)
    popular = _power_law(nodes)
    pairs = _distinct(lambda size: rng.choice(nodes, (2, size), p=popular), edges // 2, nodes, rng, ordered=False)
    adjacency = Entries(np.hstack([pairs, pairs[::-1]]), np.ones(2 * pairs.shape[1]), (nodes, nodes))
    common = _power_law(features)
    words = _distinct(
        lambda size: np.vstack([rng.integers(0, nodes, size), rng.choice(features, size, p=common)]),
        entries,
        features,
        rng,
    )
    return FeaturedGraph(name, adjacency, Entries(words, np.ones(words.shape[1]), (nodes, features)))


def _power_law(size: int) -> NDArray[np.float64]:
    weights = (np.arange(size) + 10.0) ** -0.8
    return np.asarray(weights / weights.sum())


def _distinct(
    draw: Callable[[int], NDArray[np.int64]], wanted: int, columns: int, rng: np.random.Generator, ordered: bool = True
) -> NDArray[np.int64]:
    """That many distinct pairs; without order, pairs of two different numbers, smaller first."""
    pairs = np.empty((2, 0), dtype=np.int64)
    while pairs.shape[1] < wanted:
        drawn = draw(2 * (wanted - pairs.shape[1]) + 16)
        if not ordered:
            drawn = np.sort(drawn[:, drawn[0] != drawn[1]], axis=0)
        pairs = np.hstack([pairs, drawn])
        _, first = np.unique(pairs[0] * np.int64(columns) + pairs[1], return_index=True)
        pairs = pairs[:, np.sort(first)]
    return pairs[:, :wanted]


def read_graph(path: Path) -> FeaturedGraph:
    """Read a graph from an .npz file with num_nodes, num_features, src, dst, feat_row, feat_col and feat_val.

    Raises:
        DataError: The file cannot be read, or lacks one of them.
    """
    try:
        with np.load(path) as data:
            nodes, features = int(data["num_nodes"]), int(data["num_features"])
            edges = np.array([data["src"], data["dst"]], np.int64)
            words = np.array([data["feat_row"], data["feat_col"]], np.int64)
            values = data["feat_val"].astype(np.float64)
            adjacency = Entries(edges, np.ones(edges.shape[1]), (nodes, nodes))
            return FeaturedGraph(path.stem, adjacency, Entries(words, values, (nodes, features)))
    except (OSError, KeyError, ValueError) as error:
        raise DataError(f"{path} is no graph: {error}") from error


def gcn_tensors(
    graph: FeaturedGraph, hidden: int = 256, classes: int = 16, seed: int = 0
) -> dict[str, Entries | NDArray[np.float64]]:
    """The tensors of GCN: adjacency with self loops, inverse root degrees, features and random weights."""
    nodes, features = graph.features.shape
    rng = np.random.default_rng(seed)
    loops = np.arange(nodes)
    coordinates = np.hstack([graph.adjacency.coordinates, np.array([loops, loops])])
    with_loops = Entries(coordinates, np.concatenate([graph.adjacency.values, np.ones(nodes)]), (nodes, nodes))
    degrees = np.bincount(coordinates[0], with_loops.values, minlength=nodes)
    return {
        "D": Entries(np.array([loops, loops]), np.asarray(degrees**-0.5, np.float64), (nodes, nodes)),
        "A": with_loops,
        "X": graph.features,
        "W1": rng.standard_normal((features, hidden)) / np.sqrt(features),
        "W2": rng.standard_normal((hidden, classes)) / np.sqrt(hidden),
    }


def gcn_by_numpy(tensors: Mapping[str, Entries | NDArray[np.float64]]) -> NDArray[np.float64]:
    """GCN on dense arrays, multiplied by the weights before neighbours are aggregated."""
    dense = {name: _dense(tensor) if isinstance(tensor, Entries) else tensor for name, tensor in tensors.items()}
    scale = np.diagonal(dense["D"])
    normalised = scale[:, None] * dense["A"] * scale
    hidden = sigmoid(normalised @ (dense["X"] @ dense["W1"]))
    return sigmoid(normalised @ (hidden @ dense["W2"]))


def sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / (1 + exp(-x))."""
    return np.asarray(1 / (1 + np.exp(-x)))


def _dense(entries: Entries) -> NDArray[np.float64]:
    array = np.zeros(entries.shape)
    array[tuple(entries.coordinates)] = entries.values
    return array
