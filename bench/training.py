"""Trains the graph convolutional network of Kipf and Welling (ICLR 2017, section 5) in a database, on Cora or Citeseer.

    python -m bench.training [GRAPH] --data FOLDER [--seeds 10] [--steps 200] [--database URL]

Two layers, 16 hidden features, dropout of one half, the sum of squares of the first weights times 5e-4 / 2, Adam with
the rate 0.01; features of a row sum to 1; trained on the first 20 nodes a class, tested on the last 1,000. There is no
early stopping. With torch installed, `--torch` trains the same network by torch with the same number of seeds.
"""

import argparse
import importlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from rich.table import Table

import sparseeinsum as se
from bench.datasets import add_data_folder
from bench.timing import CONSOLE

LABELLED, TESTED, HIDDEN = 20, 1000, 16
STATE = ("W1", "W2", "M1", "M2", "V1", "V2")

FIRST = """
include "nn"
param seed
tensor W1[f: {features}, h: {hidden}]
tensor W2[h: {hidden}, c: {classes}]
W1[f, h] = glorot_uniform(4 * seed)[f, h]
W2[h, c] = glorot_uniform(4 * seed + 1)[h, c]
"""
STEP = """
include "nn"
include "optim"
param seed
state W1, W2, M1, M2, V1, V2
H[i, h] = relu(gcn(N, dropout(X, 0.5, 4 * seed + 2, step), W1)[i, h])
Z[i, c] = gcn(N, dropout(H, 0.5, 4 * seed + 3, step), W2)[i, c]
loss = cross_entropy(Z, Y) + 5e-4 * l2(W1)
next_M1 = adam_mean(M1, gradient(loss, W1))
next_M2 = adam_mean(M2, gradient(loss, W2))
next_V1 = adam_square(V1, gradient(loss, W1))
next_V2 = adam_square(V2, gradient(loss, W2))
next_W1 = adam(W1, next_M1, next_V1, step, 0.01)
next_W2 = adam(W2, next_M2, next_V2, step, 0.01)
"""
TEST = """
include "nn"
include "metrics"
H[i, h] = relu(gcn(N, X, W1)[i, h])
Z[i, c] = gcn(N, H, W2)[i, c]
share = accuracy(Z, T)
"""


@dataclass(frozen=True)
class Task:
    """A graph whose nodes have classes.

    Attributes:
        adjacency: (nodes, nodes), 1 for every edge and from every node to itself.
        features: (nodes, features).
        labels: The class of every node.
    """

    adjacency: sp.coo_array
    features: sp.coo_array | NDArray[np.float64]
    labels: NDArray[np.int64]

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.labels.max()) + 1

    @property
    def trained(self) -> NDArray[np.int64]:
        """The nodes whose classes are known."""
        return np.arange(LABELLED * self.classes)

    @property
    def tested(self) -> NDArray[np.int64]:
        """The nodes whose classes the network must tell."""
        return np.arange(self.labels.size - TESTED, self.labels.size)

    def one_hot(self, nodes: NDArray[np.int64]) -> sp.coo_array:
        """(nodes, classes), 1 for the class of each of some nodes."""
        entries: Any = np.ones(nodes.size), (nodes, self.labels[nodes])
        return sp.coo_array(entries, shape=(self.labels.size, self.classes))


def read_task(path: Path) -> Task:
    """The task in a file of the data folder."""
    data = np.load(path)
    nodes, features = int(data["num_nodes"]), int(data["num_features"])
    links: Any = np.ones(data["src"].size), (data["dst"], data["src"])
    adjacency = sp.coo_array(links, shape=(nodes, nodes)).tocsr()
    adjacency.data[:] = 1
    words: Any = data["feat_val"].astype(float), (data["feat_row"], data["feat_col"])
    counts = sp.coo_array(words, shape=(nodes, features)).tocsr()
    sums = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1e-12)
    shares = sp.diags_array(1 / sums) @ counts
    return Task((adjacency + sp.eye_array(nodes)).tocoo(), shares.tocoo(), data["labels"])


@dataclass(frozen=True)
class Training:
    """What one seed gave: the share of tested nodes with the right class, the last loss, and seconds."""

    accuracy: float
    loss: float
    seconds: float


def load(database: se.Database, task: Task) -> None:
    """Store the tensors of a task, with the normalised graph N."""
    database.tensor("A", task.adjacency)
    database.tensor("X", task.features)
    database.tensor("Y", task.one_hot(task.trained))
    database.tensor("T", task.one_hot(task.tested))
    normalised = database.run('include "nn"\nN[i, j] = symmetrically_normalised(A)[i, j]')["N"]
    database.tensor("N", normalised.to_scipy())


def store_first_state(database: se.Database, task: Task, hidden: int, seed: int) -> None:
    """Store first weights, and zeros for the means of Adam."""
    sizes = {"features": task.features.shape[1], "hidden": hidden, "classes": task.classes}
    first = database.run(FIRST.format(**sizes), parameters={"seed": seed})
    for weights, *means in (("W1", "M1", "V1"), ("W2", "M2", "V2")):
        database.tensor(weights, first[weights].to_numpy())
        for mean in means:
            database.tensor(mean, np.zeros(first[weights].shape))


def train_in_database(task: Task, url: str | None, seeds: int, steps: int) -> Iterator[Training]:
    """Train with every seed in a database, which gets the tensors of the task."""
    with se.connect() if url is None else se.connect(url) as database:
        load(database, task)
        for seed in range(seeds):
            store_first_state(database, task, HIDDEN, seed)
            start = time.perf_counter()
            result = database.iterate(STEP, steps=steps, history=["loss"], parameters={"seed": seed}, progress=False)
            seconds = time.perf_counter() - start
            loss = float(result.history["loss"][-1])
            yield Training(float(database.run(TEST)["share"].to_numpy()), loss, seconds)


class TorchNetwork:
    """The same network by torch; the graph, and features that are sparse, are sparse matrices."""

    def __init__(self, task: Task, hidden: int, form: str = "COO") -> None:
        """Convert the tensors of a task to sparse matrices in COO or CSR format, and draw first weights."""
        self._form = form
        self._torch: Any = importlib.import_module("torch")
        root = sp.diags_array(1 / np.sqrt(np.asarray(task.adjacency.sum(axis=1)).ravel()))
        self._graph = self._sparse(root @ task.adjacency @ root)
        is_dense = isinstance(task.features, np.ndarray)
        self._features = self._torch.from_numpy(task.features) if is_dense else self._sparse(task.features)
        self._trained = task.trained
        self._labels = self._torch.from_numpy(task.labels[task.trained].astype(np.int64))
        shapes = ((task.features.shape[1], hidden), (hidden, task.classes))
        empty = [self._torch.empty(*shape, dtype=self._torch.float64, requires_grad=True) for shape in shapes]
        self._weights = [self._torch.nn.init.xavier_uniform_(weights) for weights in empty]
        self._optimiser = self._torch.optim.Adam(self._weights, lr=0.01)

    def _sparse(self, matrix: Any) -> Any:  # noqa: ANN401  # matrices of other libraries
        rows = matrix.tocsr()
        rows.sort_indices()
        parts = (self._torch.from_numpy(part) for part in (rows.indptr, rows.indices, rows.data.astype(np.float64)))
        compressed = self._torch.sparse_csr_tensor(*parts, rows.shape, check_invariants=False)
        return compressed if self._form == "CSR" else compressed.to_sparse_coo().coalesce()

    def step(self) -> float:
        """Train for a step; returns the loss before it."""
        functional = self._torch.nn.functional
        self._optimiser.zero_grad()
        loss = functional.cross_entropy(self.scores(0.5)[self._trained], self._labels)
        loss = loss + 5e-4 * (self._weights[0] ** 2).sum() / 2
        loss.backward()
        self._optimiser.step()
        return float(loss.detach())

    def scores(self, dropped: float) -> Any:  # noqa: ANN401  # a tensor of torch, which need not be there
        """(nodes, classes), with a share of features and hidden values dropped."""
        drop, first, second = self._torch.nn.functional.dropout, *self._weights
        hidden = self._torch.relu(self._graph @ (self._features_without(dropped) @ first))
        return self._graph @ (drop(hidden, dropped) @ second)

    def _features_without(self, dropped: float) -> Any:  # noqa: ANN401
        features, drop = self._features, self._torch.nn.functional.dropout
        if features.layout == self._torch.strided:
            return drop(features, dropped)
        values = drop(features.values(), dropped)
        if self._form == "COO":
            return self._torch.sparse_coo_tensor(features.indices(), values, features.shape, is_coalesced=True)
        parts = features.crow_indices(), features.col_indices(), values
        return self._torch.sparse_csr_tensor(*parts, features.shape, check_invariants=False)


def train_by_torch(task: Task, seeds: int, steps: int) -> Iterator[Training]:
    """Train with every seed by torch."""
    torch = importlib.import_module("torch")
    for seed in range(seeds):
        torch.manual_seed(seed)
        network = TorchNetwork(task, HIDDEN)
        start = time.perf_counter()
        losses = [network.step() for _ in range(steps)]
        seconds = time.perf_counter() - start
        predicted = network.scores(0.0)[task.tested].argmax(dim=1).numpy()
        yield Training(float((predicted == task.labels[task.tested]).mean()), losses[-1], seconds)


def main() -> None:
    """Train, and print a row for every seed and the mean."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", nargs="?", default="planetoid_cora", help="planetoid_cora or planetoid_citeseer")
    add_data_folder(parser)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--database", metavar="URL", help="where to train; by default a DuckDB in memory")
    parser.add_argument("--torch", action="store_true", help="train by torch instead")
    chosen = parser.parse_args()
    task = read_task(Path(chosen.data) / f"{chosen.graph}.npz")
    trainings = (
        train_by_torch(task, chosen.seeds, chosen.steps)
        if chosen.torch
        else train_in_database(task, chosen.database, chosen.seeds, chosen.steps)
    )
    results = []
    for seed, training in enumerate(trainings):
        results.append(training)
        milliseconds = training.seconds / chosen.steps * 1000
        CONSOLE.print(
            f"seed {seed}: accuracy {training.accuracy:.3f}, loss {training.loss:.4f}, {milliseconds:.0f} ms a step"
        )
    table = Table("", "accuracy", "standard deviation", "ms a step", title=chosen.graph)
    accuracies = [result.accuracy for result in results]
    milliseconds = float(np.mean([result.seconds for result in results])) / chosen.steps * 1000
    where = "torch" if chosen.torch else chosen.database or "DuckDB"
    table.add_row(where, f"{np.mean(accuracies):.4f}", f"{np.std(accuracies):.4f}", f"{milliseconds:.0f}")
    CONSOLE.print(table)


if __name__ == "__main__":
    main()
