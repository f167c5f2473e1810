"""The command line: the command demo --train: a graph network that is trained in the database, and checked."""

import argparse
import sys
import time
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.api.graphs import CoordinateMatrix
from sparseeinsum.api.labelled_graphs import LabelledGraph, labelled_graph
from sparseeinsum.cli.charts import column_chart, line_drawing
from sparseeinsum.cli.output import print_status
from sparseeinsum.cli.usage import UsageError
from sparseeinsum.plans.picture.page import html_document
from sparseeinsum.plans.preview import can_draw
from sparseeinsum.presentation.html_tables import html_text

_HIDDEN = 16
_SHAPES = {"W1": "f: {words}, h: {hidden}", "W2": "h: {hidden}, c: {classes}"}
_TOLERANCE = 1e-9

_NETWORK = """
H[i, h] = relu(gcn(N, X, W1)[i, h])
Z[i, c] = gcn(N, H, W2)[i, c]
"""
STEP = f"""
# Kipf and Welling, ICLR 2017: two layers, trained on all known nodes at once. N is the normalised graph, X are
# the words; Y has a 1 for the class of each known node, T for those of the others.
include "nn"
include "optim"
include "metrics"
state W1, W2, M1, M2, V1, V2
{_NETWORK.strip()}
loss = cross_entropy(Z, Y) + 2e-3 * l2(W1)
accuracy_of_others = accuracy(Z, T)
next_M1 = adam_mean(M1, gradient(loss, W1))
next_M2 = adam_mean(M2, gradient(loss, W2))
next_V1 = adam_square(V1, gradient(loss, W1))
next_V2 = adam_square(V2, gradient(loss, W2))
next_W1 = adam(W1, next_M1, next_V1, step, 0.05)
next_W2 = adam(W2, next_M2, next_V2, step, 0.05)
"""


def train(arguments: argparse.Namespace) -> None:
    """Train a two-layer GCN in the database, plot its loss, and check its last scores against numpy."""
    if arguments.data is not None:
        raise UsageError("--train generates its graph; leave out --data")
    if arguments.steps < 1:
        raise UsageError(f"--steps {arguments.steps} trains nothing; give 1 or more")
    labelled = labelled_graph()
    print("A graph convolutional network, trained inside DuckDB")
    print(f"{labelled.graph.summary}; {len(labelled.known)} nodes of known class")
    with se.connect() as database:
        _load(database, labelled)
        print(f"\nA step\n{_indented(STEP)}\n")
        start = time.perf_counter()
        result = database.iterate(STEP, steps=arguments.steps, history=["loss", "accuracy_of_others"])
        seconds = time.perf_counter() - start
        losses: list[float] = result.history["loss"].to_pylist()
        shares: list[float] = result.history["accuracy_of_others"].to_pylist()
        accuracy = _checked_accuracy(database, labelled)
    print("The loss")
    for line in column_chart(losses, is_plain=not can_draw(sys.stdout)):
        print(f"  {line}")
    summary = (
        f"{result.steps} steps in {seconds:.1f} s; the loss went from {losses[0]:.3f} to {losses[-1]:.3f}",
        f"of the {len(labelled.others)} other nodes, {shares[0]:.1%} had the right class before, {accuracy:.1%} after",
    )
    print("", *summary, "numpy computes the same scores from the weights in the database", sep="\n")
    if arguments.html is not None:
        Path(arguments.html).write_text(_page("; ".join(summary), losses, shares), encoding="utf-8")
        print_status(f"the page is {arguments.html}")


def _load(database: se.Database, labelled: LabelledGraph) -> None:
    """Load the graph and its classes, and draw the first weights."""
    for name, matrix in _sparse_inputs(labelled).items():
        database.tensor(name, (matrix.coordinates, matrix.values), shape=matrix.shape)
    sizes = {
        "words": labelled.graph.features.shape[1],
        "hidden": _HIDDEN,
        "classes": labelled.classes_of(labelled.known).shape[1],
    }
    for seed, (name, shape) in enumerate(_SHAPES.items()):
        first = f'include "nn"\ntensor W[{shape.format(**sizes)}]\nW[f, o] = glorot_uniform({seed})[f, o]'
        weights = database.run(first, progress=False)["W"].to_numpy()
        database.tensor(name, weights)
        for moment in "MV":
            database.tensor(name.replace("W", moment), np.zeros_like(weights))


def _sparse_inputs(labelled: LabelledGraph) -> dict[str, CoordinateMatrix]:
    adjacency = labelled.graph.adjacency
    roots = np.sqrt(np.bincount(adjacency.coordinates[0], adjacency.values))
    rows, columns = adjacency.coordinates
    normalised = adjacency.values / (roots[rows] * roots[columns])
    return {
        "N": CoordinateMatrix(adjacency.coordinates, normalised, adjacency.shape),
        "X": labelled.graph.features,
        "Y": labelled.classes_of(labelled.known),
        "T": labelled.classes_of(labelled.others),
    }


def _checked_accuracy(database: se.Database, labelled: LabelledGraph) -> float:
    """The share of the other nodes whose class is right in the end, by scores that equal numpy's."""
    program = f'include "nn"\n{_NETWORK}\nfinal_W1[f, h] = W1[f, h]\nfinal_W2[h, c] = W2[h, c]'
    results = database.run(program, outputs=["Z", "final_W1", "final_W2"], progress=False)
    scores, first, second = (results[name].to_numpy() for name in ("Z", "final_W1", "final_W2"))
    dense = {name: matrix.to_dense() for name, matrix in _sparse_inputs(labelled).items()}
    hidden = np.maximum(dense["N"] @ (dense["X"] @ first), 0)
    expected: NDArray[np.float64] = dense["N"] @ (hidden @ second)
    error = float(np.max(np.abs(scores - expected)) / np.max(np.abs(expected)))
    if not error <= _TOLERANCE:
        raise se.EngineError(f"the scores are wrong: they differ from numpy's by {error:.1e}")
    others = labelled.others
    return float(np.mean(scores[others].argmax(axis=1) == labelled.labels[others]))


def _page(summary: str, losses: list[float], shares: list[float]) -> str:
    """An HTML document with the curves and the program."""
    title = "A graph network, trained inside DuckDB"
    curves = {"Loss": losses, "Accuracy on nodes of unknown class": shares}
    drawings = "\n".join(
        f'<h2>{name}</h2>\n<div class="drawing">{line_drawing(name, values)}</div>' for name, values in curves.items()
    )
    return html_document(
        title, f"<h1>{title}</h1>\n<p>{escape(summary)}</p>\n{drawings}\n<h2>A step</h2>\n{html_text(STEP.strip())}"
    )


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.strip().splitlines())
