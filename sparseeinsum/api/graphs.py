"""Graphs with node features, and a graph convolutional network over them, for the demo; needs numpy alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.errors import DataError
from sparseeinsum.operators.reference_functions import sigmoid

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
class CoordinateMatrix:
    """A sparse matrix in coordinate format.

    Attributes:
        coordinates: The indices, (2, entries), int64.
        values: The values, (entries,), float64.
        shape: The shape of the matrix.
    """

    coordinates: NDArray[np.int64]
    values: NDArray[np.float64]
    shape: tuple[int, int]

    def to_dense(self) -> NDArray[np.float64]:
        """The matrix as an array, 0 where it has no entry."""
        array = np.zeros(self.shape)
        array[tuple(self.coordinates)] = self.values
        return array


@dataclass(frozen=True, slots=True)
class FeaturedGraph:
    """A graph whose nodes have sparse features.

    Attributes:
        name: The name of the graph, for users.
        adjacency: (nodes, nodes), 1 for every directed edge, no self loops.
        features: (nodes, features).
    """

    name: str
    adjacency: CoordinateMatrix
    features: CoordinateMatrix

    @property
    def summary(self) -> str:
        """A line of text with its sizes."""
        nodes, features = self.features.shape
        edges, words = len(self.adjacency.values), len(self.features.values)
        return f"{self.name}: {nodes:,} nodes, {edges:,} edges, {features:,} features ({words:,} set)"


def citation_graph(
    nodes: int = 2708, edges: int = 10556, features: int = 1433, entries: int = 49216, seed: int = 0, name: str = "twin"
) -> FeaturedGraph:
    """Generate a graph like a citation network: undirected edges, and power laws for degrees and words.

    Args:
        nodes: The number of nodes.
        edges: The number of directed edges, an even number.
        features: The number of words in the vocabulary.
        entries: The number of words of all nodes together.
        seed: The seed of the random numbers.
        name: The name of the graph, for users.
    """
    rng = np.random.default_rng(seed)
    popularity = _power_law(nodes)
    pairs = _distinct(lambda size: rng.choice(nodes, (2, size), p=popularity), edges // 2, nodes, rng, ordered=False)
    adjacency = CoordinateMatrix(np.hstack([pairs, pairs[::-1]]), np.ones(2 * pairs.shape[1]), (nodes, nodes))
    frequency = _power_law(features)
    words = _distinct(
        lambda size: np.vstack([rng.integers(0, nodes, size), rng.choice(features, size, p=frequency)]),
        entries,
        features,
        rng,
    )
    return FeaturedGraph(name, adjacency, CoordinateMatrix(words, np.ones(words.shape[1]), (nodes, features)))


def _power_law(size: int) -> NDArray[np.float64]:
    weights = (np.arange(size) + 10.0) ** -0.8
    return np.asarray(weights / weights.sum())


def _distinct(
    draw: Callable[[int], NDArray[np.int64]], count: int, columns: int, rng: np.random.Generator, ordered: bool = True
) -> NDArray[np.int64]:
    """`count` distinct pairs that `draw` returns; if not `ordered`, pairs of different numbers, smaller first."""
    pairs = np.empty((2, 0), dtype=np.int64)
    while pairs.shape[1] < count:
        drawn = draw(2 * (count - pairs.shape[1]) + 16)
        if not ordered:
            drawn = np.sort(drawn[:, drawn[0] != drawn[1]], axis=0)
        pairs = np.hstack([pairs, drawn])
        _, first = np.unique(pairs[0] * np.int64(columns) + pairs[1], return_index=True)
        pairs = pairs[:, np.sort(first)]
    return pairs[:, :count]


def read_graph(path: Path) -> FeaturedGraph:
    """Read a graph from an .npz file with num_nodes, num_features, src, dst, feat_row, feat_col and feat_val.

    Raises:
        DataError: The file cannot be read, or lacks one of these arrays.
    """
    try:
        with np.load(path) as data:
            nodes, features = int(data["num_nodes"]), int(data["num_features"])
            edges = np.array([data["src"], data["dst"]], np.int64)
            words = np.array([data["feat_row"], data["feat_col"]], np.int64)
            values = data["feat_val"].astype(np.float64)
            adjacency = CoordinateMatrix(edges, np.ones(edges.shape[1]), (nodes, nodes))
            return FeaturedGraph(path.stem, adjacency, CoordinateMatrix(words, values, (nodes, features)))
    except (OSError, KeyError, ValueError) as error:
        raise DataError(f"{path} is not a graph: {error}") from error


def gcn_tensors(
    graph: FeaturedGraph, hidden: int = 256, classes: int = 16, seed: int = 0
) -> dict[str, CoordinateMatrix | NDArray[np.float64]]:
    """The tensors of GCN: the adjacency with self loops, degrees to the power -1/2, features and random weights.

    Args:
        graph: The graph and the features of its nodes.
        hidden: The width of the first layer.
        classes: The width of the second layer.
        seed: The seed of the random weights.
    """
    nodes, features = graph.features.shape
    rng = np.random.default_rng(seed)
    loops = np.arange(nodes)
    coordinates = np.hstack([graph.adjacency.coordinates, np.array([loops, loops])])
    with_loops = CoordinateMatrix(coordinates, np.concatenate([graph.adjacency.values, np.ones(nodes)]), (nodes, nodes))
    degrees = np.bincount(coordinates[0], with_loops.values, minlength=nodes)
    return {
        "D": CoordinateMatrix(np.array([loops, loops]), np.asarray(degrees**-0.5, np.float64), (nodes, nodes)),
        "A": with_loops,
        "X": graph.features,
        "W1": rng.standard_normal((features, hidden)) / np.sqrt(features),
        "W2": rng.standard_normal((hidden, classes)) / np.sqrt(hidden),
    }


def gcn_by_numpy(tensors: Mapping[str, CoordinateMatrix | NDArray[np.float64]]) -> NDArray[np.float64]:
    """GCN on dense arrays of numpy; it multiplies by the weights before it aggregates neighbours."""
    dense = {
        name: tensor.to_dense() if isinstance(tensor, CoordinateMatrix) else tensor for name, tensor in tensors.items()
    }
    scale = np.diagonal(dense["D"])
    normalised = scale[:, None] * dense["A"] * scale
    hidden = sigmoid(normalised @ (dense["X"] @ dense["W1"]))
    return sigmoid(normalised @ (hidden @ dense["W2"]))
