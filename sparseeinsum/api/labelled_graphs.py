"""A generated graph whose nodes have classes that can be learnt, for the demo; needs numpy alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.api.graphs import CoordinateMatrix, FeaturedGraph

_SHARE_WITHIN = 0.7  # of edges, whose ends are drawn from one class
_SHARE_OF_OWN_WORDS = 0.25  # which are drawn from those of the class


@dataclass(frozen=True, slots=True)
class LabelledGraph:
    """A graph whose nodes have classes.

    Attributes:
        graph: The graph. A node is its own neighbour, and its features sum to 1.
        labels: The class of every node, (nodes,).
        known: The nodes whose classes a network learns from.
    """

    graph: FeaturedGraph
    labels: NDArray[np.int64]
    known: NDArray[np.int64]

    @property
    def others(self) -> NDArray[np.int64]:
        """The nodes whose classes a network must tell."""
        return np.setdiff1d(np.arange(len(self.labels)), self.known)

    def classes_of(self, nodes: NDArray[np.int64]) -> CoordinateMatrix:
        """(nodes of the graph, classes), 1 for the class of each of some nodes."""
        shape = (len(self.labels), int(self.labels.max()) + 1)
        return CoordinateMatrix(np.array([nodes, self.labels[nodes]]), np.ones(len(nodes)), shape)


def labelled_graph(
    nodes: int = 1000,
    classes: int = 5,
    edges: int = 3000,
    words: int = 400,
    words_of_node: int = 12,
    known_of_class: int = 20,
    seed: int = 0,
) -> LabelledGraph:
    """Generate a graph like a citation network: most edges join nodes of a class, and each class prefers some words.

    Args:
        nodes: The number of nodes.
        classes: The number of classes.
        edges: The number of undirected edges that are drawn; those that are drawn twice count once.
        words: The number of words in the vocabulary.
        words_of_node: The number of words that are drawn for a node.
        known_of_class: The number of nodes of a class whose class is known.
        seed: The seed of the random numbers.
    """
    rng = np.random.default_rng(seed)
    labels = np.arange(nodes) * classes // nodes
    sources = rng.integers(0, nodes, edges)
    targets = _near(labels, labels[sources], rng.random(edges) < _SHARE_WITHIN, rng)
    loops = np.arange(nodes)
    pairs = np.unique(np.hstack([[sources, targets], [targets, sources], [loops, loops]]), axis=1)
    adjacency = CoordinateMatrix(pairs, np.ones(pairs.shape[1]), (nodes, nodes))
    readers = np.repeat(loops, words_of_node)
    topics = np.arange(words) * classes // words
    chosen = _near(topics, labels[readers], rng.random(len(readers)) < _SHARE_OF_OWN_WORDS, rng)
    entries, counts = np.unique(np.array([readers, chosen]), axis=1, return_counts=True)
    features = CoordinateMatrix(entries, counts / words_of_node, (nodes, words))
    known = np.flatnonzero(loops - np.searchsorted(labels, labels) < known_of_class)
    return LabelledGraph(FeaturedGraph("generated communities", adjacency, features), labels, known)


def _near(
    groups: NDArray[np.int64], wanted: NDArray[np.int64], is_within: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Random positions in sorted `groups`: of the wanted group where `is_within`, else of any."""
    first, last = np.searchsorted(groups, wanted), np.searchsorted(groups, wanted, side="right")
    return np.where(is_within, rng.integers(first, last), rng.integers(0, len(groups), len(wanted)))
