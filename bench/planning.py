"""Planning times by stage: programs of some 20 EinSums that share results, as networks and training do.

python -m bench.planning
"""

import argparse
import statistics
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import sparseeinsum as se
from bench.timing import CONSOLE, Figure, report
from sparseeinsum.api.examples import ExampleMatrix, citation_graph, gcn_inputs, load
from sparseeinsum.api.graphs import GCN
from sparseeinsum.pipeline.search_cache import SEARCHES

_LAYERS, _HEADS = 6, 3

# Layers over one normalised adjacency matrix.
DEEP_GCN = "N[i, k] = sum(D[i, j] * A[j, k])\nS[i, l] = sum(N[i, k] * D[k, l])\nH0[i, h] = sum(S[i, l] * X[l, h])\n"
DEEP_GCN += "\n".join(
    f"T{layer}[i, h] = sum(S[i, l] * H{layer - 1}[l, h])\n"
    f"U{layer}[i, h] = sum(T{layer}[i, g] * W{layer}[g, h])\n"
    f"H{layer}[i, h] = relu(U{layer}[i, h])"
    for layer in range(1, _LAYERS + 1)
)

# Every head reads the same positions and the same pairs that a graph connects.
ATTENTION_HEADS = "\n".join(
    f"Q{head}[i, k] = sum(X[i, a] * WQ{head}[a, k])\n"
    f"K{head}[j, k] = sum(X[j, a] * WK{head}[a, k])\n"
    f"V{head}[j, k] = sum(X[j, a] * WV{head}[a, k])\n"
    f"S{head}[i, j] = sum(A[i, j] * Q{head}[i, k] * K{head}[j, k])\n"
    f"Z{head}[i] = sum(S{head}[i, j])\n"
    f"O{head}[i, k] = sum(S{head}[i, j] * V{head}[j, k]) / Z{head}[i]"
    for head in range(_HEADS)
)

# A step of gradient descent of a network of three layers: what the way there computes, the way back reads.
TRAINING_STEP = """
Z1[b, h] = sum(X[b, f] * W1[f, h])
H1[b, h] = relu(Z1[b, h])
Z2[b, k] = sum(H1[b, h] * W2[h, k])
H2[b, k] = relu(Z2[b, k])
Z3[b, o] = sum(H2[b, k] * W3[k, o])
Y[b, o]  = sigmoid(Z3[b, o])
D3[b, o] = Y[b, o] - L[b, o]
E[]      = sum(D3[b, o] ^ 2)
G3[k, o] = sum(H2[b, k] * D3[b, o])
B2[b, k] = sum(D3[b, o] * W3[k, o])
D2[b, k] = B2[b, k] * (Z2[b, k] > 0)
G2[h, k] = sum(H1[b, h] * D2[b, k])
B1[b, h] = sum(D2[b, k] * W2[h, k])
D1[b, h] = B1[b, h] * (Z1[b, h] > 0)
G1[f, h] = sum(X[b, f] * D1[b, h])
N1[f, h] = W1[f, h] - 0.1 * G1[f, h]
N2[h, k] = W2[h, k] - 0.1 * G2[h, k]
N3[k, o] = W3[k, o] - 0.1 * G3[k, o]
"""


def cases() -> dict[str, tuple[str, Mapping[str, ExampleMatrix]]]:
    """Programs and inputs by name; inputs are small, since the optimizer does not look at them."""
    rng = np.random.default_rng(0)
    network = gcn_inputs(citation_graph(300, 1500, 64, 2000, seed=1), hidden=64, classes=8)
    deep: dict[str, ExampleMatrix] = {name: network[name] for name in "DAX"}
    deep |= {f"W{layer}": rng.random((64, 64)) for layer in range(1, _LAYERS + 1)}
    attention: dict[str, ExampleMatrix] = {"X": rng.random((300, 64)), "A": network["A"]}
    attention |= {f"W{what}{head}": rng.random((64, 32)) for what in "QKV" for head in range(_HEADS)}
    sizes = {"W1": (64, 128), "W2": (128, 64), "W3": (64, 8), "L": (300, 8)}
    training: dict[str, ExampleMatrix] = {name: rng.normal(size=shape) for name, shape in sizes.items()}
    training["X"] = sp.csr_array(rng.random((300, 64)) * (rng.random((300, 64)) < 0.05))
    return {
        "GCN": (GCN, network),
        "deep GCN": (DEEP_GCN, deep),
        "attention heads": (ATTENTION_HEADS, attention),
        "training step": (TRAINING_STEP, training),
    }


def run(
    name: str, text: str, inputs: Mapping[str, ExampleMatrix], optimizer: str, tiles: str | tuple[()], repeat: int
) -> list[Figure]:
    """Plan one program so many times, after once to warm up, on two new databases: one without earlier searches."""
    program = se.program(text)
    plans: list[se.Plan] = []
    again: list[se.Plan] = []
    for _ in range(1 + repeat):
        SEARCHES.clear()
        for taken in (plans, again):
            with load(se.connect(), inputs) as database:
                taken.append(database.plan(program, optimizer=optimizer, tiles=tiles))
    CONSOLE.print(f"{name}: expected to run in {plans[0].cost * 1e3:.3f} ms")
    runs = {
        stage: tuple(plan.data.planning_seconds[stage] for plan in plans[1:])
        for stage in plans[0].data.planning_seconds
    }
    runs["all, on equal data again"] = tuple(sum(plan.data.planning_seconds.values()) for plan in again[1:])
    base = statistics.median(runs["optimizer"])
    named = f"{name}, {len(plans[0].notation())} EinSums"
    return [
        Figure(named, stage, statistics.median(taken), taken, statistics.median(taken) / base)
        for stage, taken in runs.items()
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--optimizer", default="dp", help="whose planning is timed")
    parser.add_argument("--tiles", action="store_const", const="auto", default=(), help="any label may have tiles")
    parser.add_argument("--repeat", type=int, default=9, help="plans of each program; the median counts")
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures as JSON")
    asked = parser.parse_args()
    found = [
        figure
        for name, (text, inputs) in cases().items()
        for figure in run(name, text, inputs, asked.optimizer, asked.tiles, asked.repeat)
    ]
    title = f"Planning with {asked.optimizer}{' and tiles' if asked.tiles else ''}"
    report(title, found, "optimizer", asked.output / "planning.json")
