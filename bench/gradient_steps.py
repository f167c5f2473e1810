"""A training step of a graph network whose gradients are written by hand, and one with gradient(loss, W).

    python -m bench.gradient_steps [--nodes 2708] [--repeat 7]

Two layers with 16 hidden units, cross-entropy of 140 nodes, and Adam. The graph and the features are random, with as
many entries a row as those of Cora.
"""

import argparse
import statistics
import time

import numpy as np
import scipy.sparse

import sparseeinsum as se
from bench.timing import CONSOLE

FEATURES, HIDDEN, CLASSES, LABELLED = 1433, 16, 7, 140
NETWORK = """
    T[i, h] = sum(X[i, f] * W1[f, h])
    S[i, h] = sum(A[i, j] * T[j, h])
    H[i, h] = relu(S[i, h])
    P[i, c] = sum(H[i, h] * W2[h, c])
    Z[i, c] = sum(A[i, j] * P[j, c])
"""
BY_HAND = f"""{NETWORK}
    L[i] = logsumexp(Z[i, c])
    loss[] = sum[i, c](Y[i, c] * (L[i] - Z[i, c])) / bound(Y, 0)
    D[i, c] = (exp(Z[i, c] - L[i]) * sum[k](Y[i, k]) - Y[i, c]) / bound(Y, 0)
    DP[j, c] = sum(A[i, j] * D[i, c])
    G2[h, c] = sum(H[j, h] * DP[j, c])
    DH[j, h] = sum(DP[j, c] * W2[h, c])
    DS[j, h] = where(S[j, h] > 0, DH[j, h], 0)
    DT[j, h] = sum(A[i, j] * DS[i, h])
    G1[f, h] = sum(X[j, f] * DT[j, h])
"""
DERIVED = f"""{NETWORK}
    loss[] = 0 - sum(Y[i, c] * log_softmax[c](Z[i, c])) / bound(Y, 0)
    G1[f, h] = gradient(loss, W1)[f, h]
    G2[h, c] = gradient(loss, W2)[h, c]
"""
ADAM = "".join(
    f"""
    next_M{layer}[i, j] = 0.9 * M{layer}[i, j] + 0.1 * G{layer}[i, j]
    next_V{layer}[i, j] = 0.999 * V{layer}[i, j] + 0.001 * G{layer}[i, j] ^ 2
    next_W{layer}[i, j] = W{layer}[i, j] - 0.01 * next_M{layer}[i, j] / (sqrt(next_V{layer}[i, j]) + 1e-8)
    """
    for layer in (1, 2)
)
OUTPUTS = ("loss", *(f"next_{tensor}{layer}" for tensor in "WMV" for layer in (1, 2)))
STEPS = {"by hand": BY_HAND + ADAM, "with gradient(loss, W)": DERIVED + ADAM}


def loaded(nodes: int) -> se.Database:
    """A database with the graph, the features, the labels and the state of the loop."""
    rng = np.random.default_rng(0)
    db = se.connect()
    db.tensor("A", scipy.sparse.random_array((nodes, nodes), density=min(1, 5 / nodes), rng=rng))
    db.tensor("X", scipy.sparse.random_array((nodes, FEATURES), density=18 / FEATURES, rng=rng))
    labels = np.eye(CLASSES)[rng.integers(0, CLASSES, nodes)]
    db.tensor("Y", labels * (np.arange(nodes) < LABELLED)[:, None])
    for layer, shape in ((1, (FEATURES, HIDDEN)), (2, (HIDDEN, CLASSES))):
        db.tensor(f"W{layer}", rng.normal(scale=0.1, size=shape))
        db.tensor(f"M{layer}", np.zeros(shape))
        db.tensor(f"V{layer}", np.zeros(shape))
    return db


def main(nodes: int, repeat: int) -> None:
    """Check that both steps compute the same, and print the EinSums of their plans, and the seconds of a run."""
    db = loaded(nodes)
    plans = {name: db.plan(text, outputs=OUTPUTS) for name, text in STEPS.items()}
    results = [db.run(plan) for plan in plans.values()]
    for name in OUTPUTS:
        first, second = (result[name].to_numpy() for result in results)
        np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-12, err_msg=name)
    seconds: dict[str, list[float]] = {name: [] for name in plans}
    for _ in range(repeat):
        for name, plan in plans.items():
            start = time.perf_counter()
            db.run(plan)
            seconds[name].append(time.perf_counter() - start)
    for name, plan in plans.items():
        shown = f"best {min(seconds[name]):.3f} s, median {statistics.median(seconds[name]):.3f} s"
        CONSOLE.print(f"{name}: {len(str(plan).splitlines())} EinSums, {shown}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2708)
    parser.add_argument("--repeat", type=int, default=7)
    asked = parser.parse_args()
    main(asked.nodes, asked.repeat)
