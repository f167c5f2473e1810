"""The recipes of the documentation at realistic sizes: inputs, program, SQL by hand, and numpy or scipy.

SQL by hand reads tables of the inputs with one row per entry: columns dim_0, dim_1, ..., val.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from sparseeinsum.api.examples import ExampleGraph

Array = NDArray[Any]


@dataclass(frozen=True)
class Recipe:
    """A recipe.

    Attributes:
        name: What it computes.
        inputs: Tensors by name.
        program: Of which the last result counts.
        by_hand: Statements; the last one selects the indices and the value of every entry of the same.
        reference: The same by numpy or scipy.
        fill: What inputs hold where they have no entry.
        optimizer: That plans are made with.
    """

    name: str
    inputs: dict[str, Any]
    program: str
    by_hand: tuple[str, ...]
    reference: Callable[[], Array]
    fill: float = 0.0
    optimizer: str = "dp"


def page_rank(graph: ExampleGraph, steps: int = 20) -> Recipe:
    """Ranks after so many steps; nodes without links jump anywhere."""
    nodes = graph.adjacency.shape[0]
    degrees = np.maximum(np.asarray(graph.adjacency.sum(axis=1)).ravel(), 1)
    links = sp.csr_array(sp.diags_array(1 / degrees) @ graph.adjacency)
    lines, by_hand, ranks = [], [], "R"
    for step in range(steps):
        lines.append(f"T{step}[j] = 0.85 * sum(P[i, j] * {ranks}[i])")
        lines.append(f"R{step}[j] = T{step}[j] + (1 - sum(T{step}[k])) / bound(j)")
        by_hand.append(
            f"CREATE OR REPLACE TEMP TABLE R{step} AS WITH t AS (SELECT p.dim_1 AS j, 0.85 * sum(p.val * r.val) AS val "
            f"FROM P AS p JOIN {ranks} AS r ON p.dim_0 = r.dim_0 GROUP BY p.dim_1) SELECT r.dim_0, coalesce(t.val, 0) "
            f"+ (1 - (SELECT sum(val) FROM t)) / {nodes} AS val FROM {ranks} AS r LEFT JOIN t ON t.j = r.dim_0"
        )
        ranks = f"R{step}"

    def reference() -> Array:
        rank, backwards = np.full(nodes, 1 / nodes), sp.csr_array(links.T)
        for _ in range(steps):
            moved = 0.85 * (backwards @ rank)
            rank = moved + (1 - moved.sum()) / nodes
        return rank

    inputs = {"P": links, "R": np.full(nodes, 1 / nodes)}
    by_hand.append(f"SELECT dim_0, val FROM {ranks}")
    return Recipe(f"PageRank, {steps} steps", inputs, "\n".join(lines), tuple(by_hand), reference)


def triangles(graph: ExampleGraph) -> Recipe:
    """How many there are; every edge is stored once."""
    upper = sp.csr_array(sp.triu(graph.adjacency, 1))
    program = "T[] = sum(L[i, j] * L[j, k] * L[i, k])"
    by_hand = (
        "SELECT count(*)::DOUBLE AS val FROM L AS a JOIN L AS b ON a.dim_1 = b.dim_0 "
        "JOIN L AS c ON b.dim_1 = c.dim_1 AND a.dim_0 = c.dim_0"
    )
    return Recipe(
        "triangles", {"L": upper}, program, (by_hand,), lambda: np.asarray((upper @ upper).multiply(upper).sum())
    )


def shortest_paths(nodes: int = 256, degree: int = 6) -> Recipe:
    """Lengths between all pairs of nodes."""
    rng = np.random.default_rng(0)
    places = rng.random((nodes, nodes)) < degree / nodes
    weights = np.where(places, rng.uniform(1, 10, places.shape), np.inf)
    np.fill_diagonal(weights, 0.0)
    coordinates = np.nonzero(np.isfinite(weights))
    lines, by_hand, paths = [], [], "D"
    for step in range(int(np.ceil(np.log2(nodes - 1)))):
        lines.append(f"D{step}[i, k] = min({paths}[i, j] + {paths}[j, k])")
        by_hand.append(
            f"CREATE OR REPLACE TEMP TABLE D{step} AS SELECT a.dim_0, b.dim_1, min(a.val + b.val) AS val "
            f"FROM {paths} AS a JOIN {paths} AS b ON a.dim_1 = b.dim_0 GROUP BY a.dim_0, b.dim_1"
        )
        paths = f"D{step}"
    by_hand.append(f"SELECT dim_0, dim_1, val FROM {paths}")
    graph = sp.csr_array((weights[coordinates], coordinates), shape=weights.shape)
    inputs = {"D": (np.array(coordinates), weights[coordinates])}
    name, program = f"shortest paths, {nodes} nodes", "\n".join(lines)
    return Recipe(name, inputs, program, tuple(by_hand), lambda: shortest_path(graph, method="D"), fill=np.inf)


def graph_network(graph: ExampleGraph, hidden: int = 64, classes: int = 7) -> Recipe:
    """Two layers of a graph convolutional network that normalises its graph."""
    rng = np.random.default_rng(0)
    nodes, words = graph.features.shape
    links = sp.csr_array(graph.adjacency + sp.eye_array(nodes))
    first, second = rng.normal(size=(words, hidden)) / np.sqrt(words), rng.normal(size=(hidden, classes))
    program = """
        S[i]    = 1 / sqrt(sum(A[i, j]))
        N[i, j] = S[i] * A[i, j] * S[j]
        H[i, n] = relu(sum(N[i, j] * X[j, m] * W[m, n]))
        Y[i, c] = softmax[c](sum(N[i, j] * H[j, n] * V[n, c]))
    """
    by_hand = f"""
        WITH s AS (SELECT dim_0 AS i, 1 / sqrt(sum(val)) AS val FROM A GROUP BY dim_0),
        n AS (SELECT a.dim_0 AS i, a.dim_1 AS j, s.val * a.val * t.val AS val
              FROM A AS a JOIN s ON s.i = a.dim_0 JOIN s AS t ON t.i = a.dim_1),
        xw AS (SELECT x.dim_0 AS j, w.dim_1 AS n, sum(x.val * w.val) AS val
               FROM X AS x JOIN W AS w ON x.dim_1 = w.dim_0 GROUP BY ALL),
        h AS (SELECT n.i, xw.n, greatest(sum(n.val * xw.val), 0) AS val FROM n JOIN xw ON n.j = xw.j GROUP BY ALL),
        hv AS (SELECT h.i AS j, v.dim_1 AS c, sum(h.val * v.val) AS val
               FROM h JOIN V AS v ON h.n = v.dim_0 GROUP BY ALL),
        z AS (SELECT n.i, hv.c, sum(n.val * hv.val) AS val FROM n JOIN hv ON n.j = hv.j GROUP BY ALL),
        e AS (SELECT i, c, exp(coalesce(val, 0) - max(coalesce(val, 0)) OVER (PARTITION BY i)) AS val
              FROM range({nodes}) AS a(i) CROSS JOIN range({classes}) AS b(c) LEFT JOIN z USING (i, c))
        SELECT i, c, val / sum(val) OVER (PARTITION BY i) AS val FROM e
    """

    def reference() -> Array:
        scale = sp.diags_array(1 / np.sqrt(np.asarray(links.sum(axis=1)).ravel()))
        normal = sp.csr_array(scale @ links @ scale)
        layer = np.maximum(normal @ (graph.features @ first), 0)
        return _softmax(normal @ (layer @ second))

    inputs = {"A": links, "X": graph.features, "W": first, "V": second}
    return Recipe(f"graph network, hidden {hidden}", inputs, program, (by_hand,), reference)


def attention(graph: ExampleGraph, width: int = 64) -> Recipe:
    """Attention of nodes to their neighbours and themselves, with a softmax over these."""
    rng = np.random.default_rng(0)
    nodes = graph.adjacency.shape[0]
    links = sp.csr_array(graph.adjacency + sp.eye_array(nodes))
    query, key, value = (rng.normal(size=(nodes, width)) for _ in range(3))
    program = """
        E[s, t] = G[s, t] * sum(Q[s, d] * K[t, d]) / sqrt(bound(Q, 1))
        M[s, t] = where(G[s, t] != 0, E[s, t], -inf)
        P[s, t] = softmax[t](M[s, t])
        Y[s, d] = sum(P[s, t] * V[t, d])
    """
    by_hand = f"""
        WITH m AS (SELECT g.dim_0 AS s, g.dim_1 AS t, sum(q.val * k.val) / sqrt({width}) AS val
                   FROM G AS g JOIN Q AS q ON q.dim_0 = g.dim_0
                   JOIN K AS k ON k.dim_0 = g.dim_1 AND k.dim_1 = q.dim_1 GROUP BY ALL),
        e AS (SELECT s, t, exp(val - max(val) OVER (PARTITION BY s)) AS val FROM m),
        p AS (SELECT s, t, val / sum(val) OVER (PARTITION BY s) AS val FROM e)
        SELECT p.s, v.dim_1, sum(p.val * v.val) AS val FROM p JOIN V AS v ON v.dim_0 = p.t GROUP BY ALL
    """

    def reference() -> Array:
        rows, columns = links.nonzero()
        scores = np.einsum("ed,ed->e", query[rows], key[columns]) / np.sqrt(width)
        powers = np.exp(scores - np.maximum.reduceat(scores, links.indptr[:-1])[rows])
        weights = sp.csr_array((powers, (rows, columns)), shape=links.shape)
        return np.asarray((weights @ value) / weights.sum(axis=1)[:, None])

    inputs = {"G": links, "Q": query, "K": key, "V": value}
    return Recipe(f"attention along edges, {width} wide", inputs, program, (by_hand,), reference)


def chain_of_variables(steps: int = 30, values: int = 200) -> Recipe:
    """The distribution of the last variable of a chain."""
    rng = np.random.default_rng(0)
    tables = rng.dirichlet(np.ones(values), size=(steps, values))
    start = np.full(values, 1 / values)
    factors = " * ".join(f"T{step}[x{step}, x{step + 1}]" for step in range(steps))
    queries = [
        f"m{step + 1} AS (SELECT t.dim_1 AS dim_0, sum(m.val * t.val) AS val "
        f"FROM {'F' if step == 0 else f'm{step}'} AS m JOIN T{step} AS t ON t.dim_0 = m.dim_0 GROUP BY t.dim_1)"
        for step in range(steps)
    ]

    def reference() -> Array:
        state = start
        for table in tables:
            state = state @ table
        return np.asarray(state)

    inputs = {"F": start} | {f"T{step}": table for step, table in enumerate(tables)}
    by_hand = f"WITH {', '.join(queries)} SELECT dim_0, val FROM m{steps}"
    program = f"L[x{steps}] = sum(F[x0] * {factors})"
    return Recipe(f"Bayesian network, chain of {steps}", inputs, program, (by_hand,), reference, optimizer="greedy")


def counting(variables: int = 18, clauses: int = 54) -> Recipe:
    """How many assignments make a formula of clauses of three literals true; by hand, trying all."""
    rng = np.random.default_rng(0)
    formula = [
        [(int(v), int(rng.integers(2))) for v in np.sort(rng.choice(variables, 3, replace=False))]
        for _ in range(clauses)
    ]
    inputs = {}
    for signs in itertools.product([0, 1], repeat=3):
        holds = np.ones((2, 2, 2), dtype="int64")
        holds[signs] = 0
        inputs["C" + "".join(map(str, signs))] = holds
    factors = [
        f"C{''.join(str(sign) for _, sign in clause)}[{', '.join(f'x{v}' for v, _ in clause)}]" for clause in formula
    ]
    tests = [" OR ".join(f"(x >> {v} & 1) <> {sign}" for v, sign in clause) for clause in formula]
    by_hand = f"SELECT count(*) AS val FROM range({1 << variables}) AS t(x) WHERE ({') AND ('.join(tests)})"

    def reference() -> Array:
        x = np.arange(1 << variables)
        holds = np.ones(len(x), bool)
        for clause in formula:
            holds &= np.any([(x >> v & 1) != sign for v, sign in clause], axis=0)
        return np.asarray(holds.sum())

    name, program = f"solutions, {variables} variables", f"N[] = sum({' * '.join(factors)})"
    return Recipe(name, inputs, program, (by_hand,), reference, optimizer="greedy")


def circuit(qubits: int = 10, depth: int = 5) -> Recipe:
    """The state at the end of a random circuit; by hand, gates are applied one by one to a table of amplitudes."""
    rng = np.random.default_rng(0)
    inputs: dict[str, Any] = {"Zero": np.array([1, 0], dtype=complex)}
    wires = [f"q{qubit}" for qubit in range(qubits)]
    factors = [f"Zero[{wire}]" for wire in wires]
    by_hand = ["CREATE OR REPLACE TEMP TABLE state AS SELECT 0::BIGINT AS s, 1.0 AS re, 0.0 AS im"]
    gates: list[tuple[Array, tuple[int, ...]]] = []

    def add(matrix: Array, acted_on: tuple[int, ...]) -> None:
        number = len(gates)
        gates.append((matrix, acted_on))
        inputs[f"G{number}"] = matrix.reshape([2] * (2 * len(acted_on)))
        after = [f"g{number}_{qubit}" for qubit in acted_on]
        factors.append(f"G{number}[{', '.join(after + [wires[qubit] for qubit in acted_on])}]")
        by_hand.append(_gate_by_hand(matrix, acted_on))
        for qubit, wire in zip(acted_on, after, strict=True):
            wires[qubit] = wire

    for layer in range(depth):
        for qubit in range(qubits):
            add(np.linalg.qr(rng.normal(size=(2, 2)) + 1j * rng.normal(size=(2, 2)))[0], (qubit,))
        for qubit in range(layer % 2, qubits - 1, 2):
            add(np.diag([1, 1, 1, -1]).astype(complex), (qubit, qubit + 1))

    def reference() -> Array:
        state = np.zeros((2,) * qubits, dtype=complex)
        state[(0,) * qubits] = 1
        for matrix, acted_on in gates:
            count = len(acted_on)
            gate = matrix.reshape([2] * (2 * count))
            state = np.moveaxis(np.tensordot(gate, state, (range(count, 2 * count), acted_on)), range(count), acted_on)
        return state

    bits = ", ".join(f"s >> {qubit} & 1" for qubit in range(qubits))
    by_hand.append(f"SELECT {bits}, re, im FROM state")
    program = f"Psi[{', '.join(wires)}] = sum({' * '.join(factors)})"
    name = f"circuit, {qubits} qubits, {len(gates)} gates"
    return Recipe(name, inputs, program, tuple(by_hand), reference, optimizer="greedy")


def _gate_by_hand(matrix: Array, acted_on: tuple[int, ...]) -> str:
    """A gate as a table of its entries, joined with the amplitudes by the bits that it acts on."""
    size, mask = len(matrix), sum(1 << qubit for qubit in acted_on)

    def place(index: int) -> int:
        bits = [index >> (len(acted_on) - 1 - position) & 1 for position in range(len(acted_on))]
        return sum(bit << qubit for bit, qubit in zip(bits, acted_on, strict=True))

    rows = [
        f"({place(to)}, {place(of)}, {matrix[to, of].real}::DOUBLE, {matrix[to, of].imag}::DOUBLE)"
        for to in range(size)
        for of in range(size)
        if matrix[to, of] != 0
    ]
    return (
        f"CREATE OR REPLACE TEMP TABLE state AS SELECT s - (s & {mask}) + g.after AS s, "
        "sum(state.re * g.re - state.im * g.im) AS re, sum(state.re * g.im + state.im * g.re) AS im "
        f"FROM state JOIN (VALUES {', '.join(rows)}) AS g(after, before, re, im) ON s & {mask} = g.before GROUP BY ALL"
    )


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
