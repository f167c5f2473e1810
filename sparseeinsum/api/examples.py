"""Example programs with their inputs, and reference implementations in scipy, for calibration and benchmarks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparseeinsum.api import graphs
from sparseeinsum.api.database import Database
from sparseeinsum.api.graphs import CoordinateMatrix, FeaturedGraph, gcn_tensors
from sparseeinsum.operators.reference_functions import sigmoid

ExampleMatrix = NDArray[np.float64] | sp.csr_array

ATTENTION = """
# Sparse attention (SparseEinSum, section 9.2): scores of the pairs that the graph connects, before normalisation.
T0[i, k]    = sum(X[i, m] * WQ[m, k])
T1[j, k]    = sum(X[j, n] * WK[n, k])
T2[i, j, k] = T0[i, k] * A[i, j]
T3[i, j]    = sum(T2[i, j, k] * T1[j, k])
S[i, j]     = T3[i, j] / {root}
"""

MULTI_HEAD_ATTENTION = """
# Multi-head attention (EinDecomp): s and t are positions, a features, h heads, d what a head sees of a position.
Q[s, h, d] = sum(X[s, a] * WQ[a, h, d])
K[t, h, d] = sum(X[t, a] * WK[a, h, d])
V[t, h, d] = sum(X[t, a] * WV[a, h, d])
P[h, s, t] = softmax[t](sum(Q[s, h, d] * K[t, h, d]) / sqrt(bound(d)))
O[s, h, d] = sum(P[h, s, t] * V[t, h, d])
Y[s, a]    = sum(O[s, h, d] * WO[h, d, a])
"""

FEED_FORWARD = """
# A feed-forward network of two layers: probabilities of classes for a batch of inputs.
H[b, n] = relu(sum(X[b, m] * W1[m, n]) + B1[n])
Y[b, o] = softmax[o](sum(H[b, n] * W2[n, o]) + B2[o])
"""

MATRIX_CHAIN = """
# (A B) + (C (D E)) of matrices (EinDecomp).
Y[i, k] = sum(A[i, j] * B[j, k]) + sum(C[i, l] * sum(D[l, m] * E[m, k]))
"""


@dataclass(frozen=True, slots=True)
class ExampleGraph:
    """A graph with sparse node features, as scipy matrices.

    Attributes:
        name: The name of the graph, for users.
        adjacency: (nodes, nodes), 1 for every directed edge, no self loops.
        features: (nodes, features).
    """

    name: str
    adjacency: sp.csr_array
    features: sp.csr_array


def citation_graph(
    nodes: int = 2708, edges: int = 10556, features: int = 1433, entries: int = 49216, seed: int = 0, name: str = "twin"
) -> ExampleGraph:
    """The graph that `graphs.citation_graph` generates, with the same arguments, as scipy matrices."""
    return _of_scipy(graphs.citation_graph(nodes, edges, features, entries, seed, name))


def read_graph(path: Path) -> ExampleGraph:
    """The graph that `graphs.read_graph` reads."""
    return _of_scipy(graphs.read_graph(path))


def _of_scipy(graph: FeaturedGraph) -> ExampleGraph:
    return ExampleGraph(graph.name, csr_array(graph.adjacency), csr_array(graph.features))


def csr_array(entries: CoordinateMatrix) -> sp.csr_array:
    """A matrix in coordinate format as a scipy matrix in CSR format."""
    return sp.coo_array((entries.values, tuple(entries.coordinates)), shape=entries.shape).tocsr()


def load(database: Database, inputs: Mapping[str, ExampleMatrix], promoted: Sequence[str] | None = None) -> Database:
    """Load the inputs of a program; returns the database.

    Args:
        database: The database.
        inputs: Matrices by name.
        promoted: The axes of dense matrices to promote if given; sparse matrices then promote both. By default loading
            chooses the layout.
    """
    for name, matrix in inputs.items():
        axes = promoted if promoted is None or isinstance(matrix, np.ndarray) else ["dim_0", "dim_1"]
        database.tensor(name, matrix, promoted=axes)
    return database


def gcn_inputs(graph: ExampleGraph, hidden: int = 256, classes: int = 16, seed: int = 0) -> dict[str, ExampleMatrix]:
    """The inputs of GCN by name, as `graphs.gcn_tensors` makes them.

    Args:
        graph: The graph and the features of its nodes.
        hidden: The width of the first layer.
        classes: The width of the second layer.
        seed: The seed of the random weights.
    """
    featured = FeaturedGraph(graph.name, _entries(graph.adjacency), _entries(graph.features))
    return matrices(gcn_tensors(featured, hidden, classes, seed))


def matrices(tensors: Mapping[str, CoordinateMatrix | NDArray[np.float64]]) -> dict[str, ExampleMatrix]:
    """The tensors, with sparse ones as scipy matrices."""
    return {
        name: csr_array(tensor) if isinstance(tensor, CoordinateMatrix) else tensor for name, tensor in tensors.items()
    }


def _entries(matrix: sp.csr_array) -> CoordinateMatrix:
    coo = matrix.tocoo()
    rows, columns = matrix.shape
    return CoordinateMatrix(np.array(coo.coords, np.int64), coo.data, (rows, columns))


def gcn_reference(inputs: dict[str, ExampleMatrix], weights_first: bool = False) -> NDArray[np.float64]:
    """GCN by scipy: a number for every node and class.

    Args:
        inputs: The inputs, as `gcn_inputs` returns them.
        weights_first: Whether to multiply by the weights before neighbours are aggregated.
    """
    normalised = inputs["D"] @ inputs["A"] @ inputs["D"]
    if weights_first:
        hidden = sigmoid(np.asarray(normalised @ (inputs["X"] @ inputs["W1"])))
        return sigmoid(normalised @ (hidden @ inputs["W2"]))
    hidden = sigmoid(np.asarray((normalised @ inputs["X"]) @ inputs["W1"]))
    return sigmoid((normalised @ hidden) @ inputs["W2"])


def attention_program(width: int) -> str:
    """The text of ATTENTION for projections of width `width`."""
    return ATTENTION.format(root=repr(float(np.sqrt(width))))


def attention_inputs(graph: ExampleGraph, width: int = 1024, seed: int = 0) -> dict[str, ExampleMatrix]:
    """The inputs of ATTENTION: adjacency, features and random projections of width `width`."""
    features = graph.features.shape[1]
    rng = np.random.default_rng(seed)
    return {
        "A": graph.adjacency,
        "X": graph.features,
        "WQ": rng.standard_normal((features, width)) / np.sqrt(features),
        "WK": rng.standard_normal((features, width)) / np.sqrt(features),
    }


def attention_reference(inputs: dict[str, ExampleMatrix]) -> sp.csr_array:
    """ATTENTION by numpy and scipy, step by step as the program."""
    queries, keys = np.asarray(inputs["X"] @ inputs["WQ"]), np.asarray(inputs["X"] @ inputs["WK"])
    edges = sp.coo_array(inputs["A"])
    rows, columns = edges.coords
    scaled = queries[rows] * edges.data[:, None]
    scores = np.einsum("ek,ek->e", scaled, keys[columns]) / np.sqrt(inputs["WQ"].shape[1])
    return sp.csr_array(sp.coo_array((scores, (rows, columns)), shape=edges.shape))


def multi_head_attention_inputs(
    positions: int = 256, heads: int = 8, width: int = 64, seed: int = 0
) -> dict[str, NDArray[np.float64]]:
    """The inputs of MULTI_HEAD_ATTENTION: values and random projections; the number of features is heads * width.

    Args:
        positions: The number of positions in the sequence.
        heads: The number of heads.
        width: The number of features that a head sees of a position.
        seed: The seed of the random numbers.
    """
    features = heads * width
    rng = np.random.default_rng(seed)
    project = (features, heads, width)
    return {
        "X": rng.standard_normal((positions, features)),
        **{name: rng.standard_normal(project) / np.sqrt(features) for name in ("WQ", "WK", "WV")},
        "WO": rng.standard_normal((heads, width, features)) / np.sqrt(features),
    }


def multi_head_attention_reference(inputs: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """MULTI_HEAD_ATTENTION by numpy, step by step as the program."""
    queries, keys, values = (
        np.einsum("sa,ahd->shd", inputs["X"], inputs[name], optimize=True) for name in ("WQ", "WK", "WV")
    )
    scores = np.einsum("shd,thd->hst", queries, keys, optimize=True) / np.sqrt(queries.shape[-1])
    mixed = np.einsum("hst,thd->shd", _softmax(scores), values, optimize=True)
    return np.asarray(np.einsum("shd,hda->sa", mixed, inputs["WO"], optimize=True))


def feed_forward_inputs(
    batch: int = 256, features: int = 784, hidden: int = 512, classes: int = 10, seed: int = 0
) -> dict[str, NDArray[np.float64]]:
    """The inputs of FEED_FORWARD: a batch, random weights and biases.

    Args:
        batch: The number of rows of X.
        features: The number of columns of X.
        hidden: The width of the first layer.
        classes: The width of the second layer.
        seed: The seed of the random numbers.
    """
    rng = np.random.default_rng(seed)
    return {
        "X": rng.standard_normal((batch, features)),
        "W1": rng.standard_normal((features, hidden)) / np.sqrt(features),
        "B1": rng.standard_normal(hidden),
        "W2": rng.standard_normal((hidden, classes)) / np.sqrt(hidden),
        "B2": rng.standard_normal(classes),
    }


def feed_forward_reference(inputs: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """FEED_FORWARD by numpy, step by step as the program."""
    hidden = np.maximum(inputs["X"] @ inputs["W1"] + inputs["B1"], 0)
    return _softmax(hidden @ inputs["W2"] + inputs["B2"])


def matrix_chain_inputs(size: int = 512, seed: int = 0) -> dict[str, NDArray[np.float64]]:
    """The inputs of MATRIX_CHAIN: random matrices; B and E have a quarter of the columns, so that the order matters.

    Args:
        size: The number of rows of every matrix.
        seed: The seed of the random numbers.
    """
    rng = np.random.default_rng(seed)
    columns = {"A": size, "B": size // 4, "C": size, "D": size, "E": size // 4}
    return {name: rng.standard_normal((size, width)) for name, width in columns.items()}


def matrix_chain_reference(inputs: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """MATRIX_CHAIN by numpy, in the best order."""
    return inputs["A"] @ inputs["B"] + inputs["C"] @ (inputs["D"] @ inputs["E"])


def _softmax(x: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
