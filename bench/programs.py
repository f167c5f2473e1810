"""Twenty programs with their data; the best plan of each runs in less than half a second on two cores.

Graphs are real if a folder has them; all other tensors are random, with fixed seeds.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import sparseeinsum as se
from bench.datasets import graph_of, random_entries, twin_of
from bench.planning import TRAINING_STEP
from sparseeinsum.api.examples import (
    FEED_FORWARD,
    MATRIX_CHAIN,
    MULTI_HEAD_ATTENTION,
    ExampleGraph,
    attention_inputs,
    attention_program,
    feed_forward_inputs,
    gcn_inputs,
    matrix_chain_inputs,
    multi_head_attention_inputs,
)
from sparseeinsum.api.graphs import GCN

Data = NDArray[np.float64] | sp.csr_array | sp.coo_array
GRAPH = "planetoid_cora"


@dataclass(frozen=True)
class Case:
    """A program and its data.

    Attributes:
        name: What to call it.
        text: The program.
        inputs: Tensors by name.
        fills: What absent entries of some of them are; 0 for the others.
    """

    name: str
    text: str
    inputs: Mapping[str, Data]
    fills: Mapping[str, float] = field(default_factory=dict)

    def database(self) -> se.Database:
        """A database in memory with the tensors in it."""
        database = se.connect()
        for name, data in self.inputs.items():
            database.tensor(name, data, fill=self.fills.get(name, 0))
        return database


@dataclass(frozen=True)
class Source:
    """Where programs get their data.

    Attributes:
        graph: Nodes, edges and sparse features.
        share: All bounds are so many times those of the benchmark.
    """

    graph: ExampleGraph
    share: float = 1.0

    def bound(self, bound: int) -> int:
        """A bound at this share, large enough to hold something."""
        return max(4, round(bound * self.share))

    def dense(self, seed: int, *bounds: int) -> NDArray[np.float64]:
        """Normally distributed values; bounds are those of the benchmark."""
        return np.random.default_rng(seed).standard_normal([self.bound(bound) for bound in bounds])

    def sparse(self, seed: int, density: float, *bounds: int) -> sp.coo_array:
        """Some entries between 0 and 1 at random indices; bounds are those of the benchmark."""
        shape = [self.bound(bound) for bound in bounds]
        size = math.prod(shape)
        return random_entries(seed, min(max(round(density * size), 8), size), *shape)

    def weights(self, seed: int, *bounds: int) -> NDArray[np.float64]:
        """A matrix that keeps values as large as they are; bounds are given as they are to be."""
        return np.asarray(np.random.default_rng(seed).standard_normal(bounds) / np.sqrt(bounds[0]))


def source(folder: Path | None) -> Source:
    """The data of the benchmark: a real graph where the folder has it, else its twin."""
    return Source(graph_of(GRAPH, folder))


def small_source(share: float) -> Source:
    """Data of the same kind with a share of all bounds."""
    return Source(twin_of(GRAPH, share), share)


def _convolutions(layers: int, source: Source) -> Case:
    """Graph convolutions as people write them: activations of the layer below, aggregated, then transformed."""
    text = "\n".join(
        f"T{layer}[i, g] = sum(S[i, j] * H{layer - 1}[j, g])\n"
        f"H{layer}[i, h] = relu(sum(T{layer}[i, g] * W{layer}[g, h]))"
        for layer in range(1, layers + 1)
    )
    parts = gcn_inputs(source.graph)
    widths = [source.graph.features.shape[1], *[source.bound(128)] * (layers - 1), source.bound(16)]
    inputs: dict[str, Data] = {
        "S": sp.csr_array(parts["D"] @ parts["A"] @ parts["D"]),
        "H0": source.graph.features,
        **{f"W{layer}": source.weights(layer, *widths[layer - 1 : layer + 1]) for layer in range(1, layers + 1)},
    }
    return Case(f"gcn_{layers}", text, inputs)


def _normalised_gcn(source: Source) -> Case:
    """The two layers of the SparseEinSum paper, which normalise the adjacency first."""
    return Case("gcn_2", GCN, gcn_inputs(source.graph, source.bound(256), source.bound(16)))


def _sparse_attention(source: Source) -> Case:
    width = source.bound(256)
    return Case("sparse_attention", attention_program(width), attention_inputs(source.graph, width))


def _sparse_softmax(source: Source) -> Case:
    text = "P[i, j] = softmax[j](S[i, j])\nY[i, k] = sum(P[i, j] * V[j, k])"
    nodes = source.graph.adjacency.shape[0]
    # Every node looks at itself, too: a row without entries has no softmax.
    scores = sp.coo_array(source.graph.adjacency + sp.eye_array(nodes))
    scores.data = np.random.default_rng(0).standard_normal(scores.nnz)
    inputs: dict[str, Data] = {"S": scores, "V": source.weights(1, nodes, source.bound(128))}
    return Case("sparse_softmax", text, inputs, {"S": -np.inf})


def _multi_head_attention(source: Source) -> Case:
    inputs = multi_head_attention_inputs(source.bound(256), heads=source.bound(8), width=source.bound(32))
    return Case("multi_head_attention", MULTI_HEAD_ATTENTION, inputs)


def _chain(source: Source) -> Case:
    return Case("chain", MATRIX_CHAIN, matrix_chain_inputs(source.bound(512)))


def _chain_badly_ordered(source: Source) -> Case:
    text = "T[i, k] = sum(A[i, j] * B[j, k])\nU[i, l] = sum(T[i, k] * C[k, l])\ny[i] = sum(U[i, l] * x[l])"
    inputs: dict[str, Data] = {name: source.dense(seed, 512, 512) for seed, name in enumerate("ABC")}
    return Case("chain_badly_ordered", text, inputs | {"x": source.dense(3, 512)})


def _block_sparse_product(source: Source) -> Case:
    blocks = source.sparse(0, 0.06, 32, 32).toarray() > 0
    shape = [source.bound(64)] * 2
    left = sp.coo_array(np.kron(blocks, np.random.default_rng(1).standard_normal(shape)))
    right = source.weights(2, left.shape[1], source.bound(256))
    return Case("block_sparse_product", "C[i, k] = sum(A[i, j] * B[j, k])", {"A": left, "B": right})


def _square(source: Source) -> Case:
    return Case("power_law_square", "B[i, k] = sum(A[i, j] * A[j, k])", {"A": source.graph.adjacency})


def _square_times_vector(source: Source) -> Case:
    text = "B[i, k] = sum(A[i, j] * A[j, k])\ny[i] = sum(B[i, k] * x[k])"
    adjacency = source.graph.adjacency
    inputs: dict[str, Data] = {"A": adjacency, "x": np.random.default_rng(0).standard_normal(adjacency.shape[0])}
    return Case("power_law_square_times_vector", text, inputs)


def _feed_forward(source: Source) -> Case:
    inputs = feed_forward_inputs(*(source.bound(bound) for bound in (256, 784, 512, 10)))
    return Case("feed_forward", FEED_FORWARD, inputs)


def _training_step(source: Source) -> Case:
    batch, features, wide, narrow, classes = (source.bound(bound) for bound in (512, 784, 128, 64, 10))
    words = sp.random_array((batch, features), density=0.05, rng=np.random.default_rng(0))
    inputs: dict[str, Data] = {
        "X": sp.coo_array(words),
        "W1": source.weights(1, features, wide),
        "W2": source.weights(2, wide, narrow),
        "W3": source.weights(3, narrow, classes),
        "L": np.random.default_rng(4).random((batch, classes)),
    }
    return Case("training_step", TRAINING_STEP, inputs)


def _sampled_product(source: Source) -> Case:
    text = "S[i, j] = A[i, j] * sum(U[i, k] * V[k, j])"
    nodes, rank = source.graph.adjacency.shape[0], source.bound(128)
    inputs: dict[str, Data] = {
        "A": source.graph.adjacency,
        "U": source.weights(0, nodes, rank),
        "V": source.weights(1, rank, nodes),
    }
    return Case("sampled_product", text, inputs)


def _factor_update(source: Source) -> Case:
    """The product of a sparse tensor with the factors of its other two axes, as in alternating least squares."""
    text = "Y[i, r] = sum(T[i, j, k] * B[j, r] * C[k, r])"
    inputs: dict[str, Data] = {
        "T": source.sparse(0, 0.003, 300, 200, 100),
        "B": source.dense(1, 200, 32),
        "C": source.dense(2, 100, 32),
    }
    return Case("factor_update", text, inputs)


def _dense_contraction(source: Source) -> Case:
    text = "Y[i, l, m] = sum(T[i, j, k] * M[j, l] * N[k, m])"
    inputs: dict[str, Data] = {
        "T": source.dense(0, 64, 64, 64),
        "M": source.dense(1, 64, 32),
        "N": source.dense(2, 64, 32),
    }
    return Case("dense_contraction", text, inputs)


def _shortest_paths(source: Source) -> Case:
    lengths = sp.coo_array(source.graph.adjacency)
    lengths.data = np.random.default_rng(0).random(lengths.nnz)
    known = np.random.default_rng(1).random((lengths.shape[1], source.bound(64)))
    text = "E[i, k] = min(A[i, j] + D[j, k])"
    return Case("shortest_paths", text, {"A": lengths, "D": known}, {"A": np.inf, "D": np.inf})


def _distances(source: Source) -> Case:
    inputs: dict[str, Data] = {"X": source.dense(0, 512, 64), "Z": source.dense(1, 256, 64)}
    return Case("distances", "D[i, k] = sum((X[i, j] - Z[k, j]) ^ 2)", inputs)


def _sums_over_fills(source: Source) -> Case:
    text = "R[i] = sum((U[i, j] - V[i, j]) ^ 2)\nY[i] = log(1 + R[i])"
    inputs: dict[str, Data] = {
        "U": source.sparse(0, 0.01, 2000, 1000),
        "V": source.sparse(1, 0.02, 2000, 1000),
    }
    return Case("sums_over_fills", text, inputs, {"U": 1.0, "V": 0.5})


def _elementwise(source: Source) -> Case:
    text = "E[i, j] = relu(2 * A[i, j] - B[i, j])\nF[i, j] = E[i, j] * C[i, j] + tanh(B[i, j])\nY[j] = max(F[i, j])"
    inputs: dict[str, Data] = {name: source.sparse(seed, 0.02, 2000, 1000) for seed, name in enumerate("ABC")}
    return Case("elementwise", text, inputs)


PROGRAMS: Mapping[str, Callable[[Source], Case]] = {
    "gcn_1": partial(_convolutions, 1),
    "gcn_2": _normalised_gcn,
    "gcn_3": partial(_convolutions, 3),
    "sparse_attention": _sparse_attention,
    "sparse_softmax": _sparse_softmax,
    "multi_head_attention": _multi_head_attention,
    "chain": _chain,
    "chain_badly_ordered": _chain_badly_ordered,
    "block_sparse_product": _block_sparse_product,
    "power_law_square": _square,
    "power_law_square_times_vector": _square_times_vector,
    "feed_forward": _feed_forward,
    "training_step": _training_step,
    "sampled_product": _sampled_product,
    "factor_update": _factor_update,
    "dense_contraction": _dense_contraction,
    "shortest_paths": _shortest_paths,
    "distances": _distances,
    "sums_over_fills": _sums_over_fills,
    "elementwise": _elementwise,
}
