"""Workloads: programs with their data, the same work as plain SQL, and the form in which arrays hold the result."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench.datasets import graph_of, random_entries, twin_of
from bench.peers import queries
from sparseeinsum.api.examples import (
    ExampleGraph,
    attention_inputs,
    attention_program,
    citation_graph,
    gcn_inputs,
)
from sparseeinsum.api.graphs import GCN

Data = NDArray[np.float64] | sp.coo_array
MTTKRP = "Y[i, r] = sum(T[i, j, k] * B[j, r] * C[k, r])"
TTM = "Y[i, j, r] = sum(T[i, j, k] * U[k, r])"
DENSE_ATTENTION = """
P[h, q, t] = softmax[t](sum(Q[h, q, d] * K[h, t, d]) / sqrt(bound(d)))
Y[h, q, d] = sum(P[h, q, t] * V[h, t, d])
"""
CHAIN = "Y[i, n] = sum(A[i, j] * B[j, k] * C[k, l] * D[l, m] * E[m, n])"


@dataclass(frozen=True)
class Workload:
    """Work for all contenders.

    Attributes:
        kind: What libraries call it.
        size: How much of it there is, for users.
        program: The program; its last statement computes the result.
        sql: The same as one query over tables with the columns i0, i1, ... and val; None where a row for each number of
            all arrays would be no contender.
        inputs: Tensors by name.
        shape: Bounds of the result.
        form: What holds the result: `dense` is an array, `entries` are indices and values, `fibres` are indices of all
            axes but the last with an array each.
        fills: What absent entries of some inputs are; 0 for the others.
    """

    kind: str
    size: str
    program: str
    sql: str | None
    inputs: Mapping[str, Data]
    shape: tuple[int, ...]
    form: str
    fills: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The kind and the size."""
        return f"{self.kind}, {self.size}"


def gcn(graph: ExampleGraph, hidden: int, features: int | None = None) -> Workload:
    """Two layers of a graph convolutional network with 16 classes; with so many dense features if given."""
    matrices = gcn_inputs(graph, hidden)
    if features is not None:
        matrices |= {"X": _dense(0, graph.adjacency.shape[0], features), "W1": _dense(1, features, hidden) / features}
    inputs = _coordinates(matrices)
    return Workload(
        "GCN", f"{graph.name}, hidden {hidden}", GCN, queries.GCN, inputs, (graph.adjacency.shape[0], 16), "dense"
    )


def attention(graph: ExampleGraph, width: int) -> Workload:
    """Scores of the pairs that the graph connects."""
    inputs = _coordinates(attention_inputs(graph, width))
    size = f"{graph.name}, {width} wide"
    return Workload(
        "sparse attention",
        size,
        attention_program(width),
        queries.attention(width),
        inputs,
        graph.adjacency.shape,
        "entries",
    )


def spmm(nodes: int, entries: int, width: int) -> Workload:
    """The product of a sparse matrix and a dense one."""
    inputs: dict[str, Data] = {"A": random_entries(0, entries, nodes, nodes), "X": _dense(1, nodes, width)}
    size = f"{nodes:,}², {entries:,} entries, {width} wide"
    return Workload(
        "SpMM", size, "Y[i, k] = sum(A[i, j] * X[j, k])", queries.spmm("A", "X"), inputs, (nodes, width), "dense"
    )


def spgemm(nodes: int, entries: int) -> Workload:
    """The product of two sparse matrices."""
    inputs = {name: random_entries(seed, entries, nodes, nodes) for seed, name in enumerate("AB")}
    size = f"{nodes:,}², {entries:,} entries each"
    return Workload(
        "SpGEMM", size, "Y[i, k] = sum(A[i, j] * B[j, k])", queries.spmm("A", "B"), inputs, (nodes, nodes), "entries"
    )


def sddmm(nodes: int, entries: int, rank: int) -> Workload:
    """The product of two dense matrices at the entries of a sparse one."""
    inputs: dict[str, Data] = {"A": random_entries(0, entries, nodes, nodes)}
    inputs |= {"U": _dense(1, nodes, rank), "V": _dense(2, nodes, rank)}
    size, text = f"{nodes:,}², {entries:,} entries, rank {rank}", "Y[i, j] = A[i, j] * sum(U[i, k] * V[j, k])"
    return Workload("SDDMM", size, text, queries.SDDMM, inputs, (nodes, nodes), "entries")


def mttkrp(bounds: tuple[int, int, int], entries: int, rank: int) -> Workload:
    """The product of a sparse tensor and the factors of its other two axes."""
    inputs: dict[str, Data] = {"T": random_entries(0, entries, *bounds)}
    inputs |= {"B": _dense(1, bounds[1], rank), "C": _dense(2, bounds[2], rank)}
    size = f"{_bounds(bounds)}, {entries:,} entries, rank {rank}"
    return Workload("MTTKRP", size, MTTKRP, queries.MTTKRP, inputs, (bounds[0], rank), "dense")


def ttm(bounds: tuple[int, int, int], entries: int, rank: int) -> Workload:
    """The product of a sparse tensor and a dense matrix along the last axis."""
    inputs: dict[str, Data] = {"T": random_entries(0, entries, *bounds), "U": _dense(1, bounds[2], rank)}
    size = f"{_bounds(bounds)}, {entries:,} entries, rank {rank}"
    return Workload("TTM", size, TTM, queries.TTM, inputs, (*bounds[:2], rank), "fibres")


def dense_product(bound: int) -> Workload:
    """The product of two square matrices."""
    inputs: dict[str, Data] = {name: _dense(seed, bound, bound) for seed, name in enumerate("AB")}
    text = "Y[i, k] = sum(A[i, j] * B[j, k])"
    return Workload("dense product", f"{bound:,}³", text, None, inputs, (bound, bound), "dense")


def dense_products(count: int, bound: int) -> Workload:
    """As many products of two square matrices each."""
    inputs: dict[str, Data] = {name: _dense(seed, count, bound, bound) for seed, name in enumerate("AB")}
    text = "Y[b, i, k] = sum(A[b, i, j] * B[b, j, k])"
    return Workload("dense products", f"{count} of {bound:,}³", text, None, inputs, (count, bound, bound), "dense")


def dense_attention(heads: int, tokens: int, width: int) -> Workload:
    """Every token of a head looks at all of them."""
    inputs: dict[str, Data] = {name: _dense(seed, heads, tokens, width) for seed, name in enumerate("QKV")}
    size = f"{heads} heads, {tokens:,} tokens, {width} wide"
    shape = heads, tokens, width
    return Workload("dense attention", size, DENSE_ATTENTION, None, inputs, shape, "dense")


def triangles(nodes: int, edges: int) -> Workload:
    """The number of triangles of an undirected graph, each edge of which is stored once."""
    adjacency = sp.coo_array(sp.tril(citation_graph(nodes, 2 * edges, 4, 4).adjacency, format="coo"))
    text = "T[] = sum(A[i, j] * A[j, k] * A[i, k])"
    size = f"{nodes:,} nodes, {edges:,} edges"
    return Workload("triangles", size, text, queries.TRIANGLES, {"A": adjacency}, (), "dense")


def shortest_paths(nodes: int, edges: int) -> Workload:
    """A relaxation of distances along all edges and to the nodes themselves."""
    loops = np.arange(nodes)
    entries: Any = random_entries(0, edges, nodes, nodes)
    off = entries.coords[0] != entries.coords[1]
    rows, columns = (np.concatenate([axis[off], loops]) for axis in entries.coords)
    lengths = sp.coo_array((np.concatenate([entries.data[off], np.zeros(nodes)]), (rows, columns)), (nodes, nodes))
    distances = np.random.default_rng(1).random(nodes) * 3
    size, text = f"{nodes:,} nodes, {edges:,} edges", "E[i] = min(A[i, j] + D[j])"
    return Workload(
        "min-plus step",
        size,
        text,
        queries.MIN_PLUS,
        {"A": lengths, "D": distances},
        (nodes,),
        "dense",
        {"A": math.inf},
    )


def elementwise(operator: str, bound: int, entries: int) -> Workload:
    """The product or the sum of two sparse tensors of four axes, which have half of their entries in common."""
    both: Any = random_entries(0, entries * 3 // 2, *[bound] * 4)
    parts = {"A": slice(0, entries), "B": slice(entries // 2, None)}
    inputs: dict[str, Data] = {}
    for name, part in parts.items():
        values: Any = both.data[part], tuple(axis[part] for axis in both.coords)
        inputs[name] = sp.coo_array(values, shape=both.shape)
    title, query = {"*": ("elementwise product", queries.PRODUCT), "+": ("elementwise sum", queries.SUM)}[operator]
    text = f"Y[i, j, k, l] = A[i, j, k, l] {operator} B[i, j, k, l]"
    return Workload(title, f"{bound}⁴, {entries:,} entries each", text, query, inputs, both.shape, "entries")


def chain(nodes: int, entries: int) -> Workload:
    """The product of five sparse matrices."""
    inputs = {name: random_entries(seed, entries, nodes, nodes) for seed, name in enumerate("ABCDE")}
    size = f"{nodes:,}², {entries:,} entries each"
    return Workload("chain of five", size, CHAIN, queries.CHAIN, inputs, (nodes, nodes), "entries")


Maker = Callable[[], Workload]


def makers(size: str, folder: Path | None) -> tuple[Maker, ...]:
    """What makes the workloads of a size, `tiny`, `small` or `full`; real graphs are read from the folder."""
    by_size: dict[str, Callable[[], tuple[Maker, ...]]] = {
        "tiny": _tiny,
        "small": partial(_small, folder),
        "full": partial(_full, folder),
    }
    return by_size[size]()


def _tiny() -> tuple[Maker, ...]:
    def graph() -> ExampleGraph:
        return twin_of("planetoid_cora", 0.02)

    return (
        lambda: gcn(graph(), 8),
        lambda: attention(graph(), 8),
        partial(spmm, 40, 120, 4),
        partial(spgemm, 40, 120),
        partial(sddmm, 40, 120, 4),
        partial(mttkrp, (20, 10, 8), 100, 4),
        partial(ttm, (20, 10, 8), 100, 4),
        partial(triangles, 40, 200),
        partial(shortest_paths, 40, 120),
        partial(elementwise, "*", 6, 100),
        partial(elementwise, "+", 6, 100),
        partial(chain, 10, 20),
        partial(dense_product, 20),
        partial(dense_products, 3, 10),
        partial(dense_attention, 2, 12, 4),
    )


def _small(folder: Path | None) -> tuple[Maker, ...]:
    return (
        lambda: gcn(graph_of("planetoid_cora", folder), 64),
        lambda: attention(graph_of("planetoid_cora", folder), 64),
        partial(spmm, 10_000, 50_000, 64),
        partial(spgemm, 20_000, 100_000),
        partial(sddmm, 20_000, 100_000, 16),
        partial(mttkrp, (1000, 800, 600), 100_000, 16),
        partial(ttm, (300, 300, 300), 100_000, 16),
        partial(triangles, 10_000, 100_000),
        partial(shortest_paths, 20_000, 200_000),
        partial(elementwise, "*", 100, 100_000),
        partial(elementwise, "+", 100, 100_000),
        partial(chain, 20_000, 40_000),
        partial(dense_product, 500),
        partial(dense_products, 16, 128),
        partial(dense_attention, 2, 512, 32),
    )


def _full(folder: Path | None) -> tuple[Maker, ...]:
    return (
        lambda: gcn(graph_of("planetoid_cora", folder), 256),
        lambda: gcn(graph_of("amazon_computers", folder), 256),
        lambda: gcn(citation_graph(169_343, 1_166_243, name="ogbn_arxiv (twin)"), 256, features=128),
        lambda: attention(graph_of("planetoid_cora", folder), 1024),
        lambda: attention(graph_of("amazon_computers", folder), 1024),
        partial(spmm, 13_752, 500_000, 767),
        partial(spmm, 169_343, 2_300_000, 128),
        partial(spgemm, 100_000, 500_000),
        partial(sddmm, 100_000, 1_000_000, 64),
        partial(mttkrp, (10_000, 5000, 2000), 1_000_000, 32),
        partial(ttm, (1000, 1000, 1000), 1_000_000, 16),
        partial(triangles, 100_000, 1_000_000),
        partial(shortest_paths, 100_000, 1_000_000),
        partial(elementwise, "*", 200, 1_000_000),
        partial(elementwise, "+", 200, 1_000_000),
        partial(chain, 100_000, 200_000),
        partial(dense_product, 2000),
        partial(dense_products, 64, 256),
        partial(dense_attention, 4, 1024, 64),
    )


def _dense(seed: int, *bounds: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).random(bounds)


def _coordinates(matrices: Mapping[str, NDArray[np.float64] | sp.csr_array]) -> dict[str, Data]:
    return {name: data if isinstance(data, np.ndarray) else data.tocoo() for name, data in matrices.items()}


def _bounds(bounds: tuple[int, ...]) -> str:
    return " x ".join(f"{bound:,}" for bound in bounds)
