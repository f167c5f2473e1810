"""The graphs of table 1 of the SparseEinSum paper: the real ones from a folder, else generated twins of their sizes."""

import argparse
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparseeinsum.api.examples import ExampleGraph, citation_graph, read_graph


@dataclass(frozen=True)
class Sizes:
    """What a twin has."""

    nodes: int
    edges: int
    features: int
    entries: int


SIZES = {
    "cora": Sizes(2485, 10138, 1433, 45487),
    "planetoid_cora": Sizes(2708, 10556, 1433, 49216),
    "planetoid_citeseer": Sizes(3327, 9104, 3703, 105165),
    "citationfull_citeseer": Sizes(4230, 10674, 602, 110_000),
    "amazon_photo": Sizes(7650, 238162, 745, 1_995_000),
    "amazon_computers": Sizes(13752, 491722, 767, 3_692_000),
}


def graph_of(name: str, folder: Path | None) -> ExampleGraph:
    """A graph by name: `<folder>/<name>.npz` where there is one, else its twin."""
    path = folder / f"{name}.npz" if folder else None
    if path is not None and path.is_file():
        return read_graph(path)
    return twin_of(name)


def twin_of(name: str, share: float = 1) -> ExampleGraph:
    """The twin of a graph, or one with a share of its nodes, edges, features and entries."""
    sizes = SIZES[name]
    nodes, features, entries = (round(size * share) for size in (sizes.nodes, sizes.features, sizes.entries))
    return citation_graph(nodes, 2 * round(sizes.edges * share / 2), features, entries, name=f"{name} (twin)")


def random_entries(seed: int, count: int, *bounds: int) -> sp.coo_array:
    """So many entries between 0 and 1 at different random indices, always the same."""
    rng = np.random.default_rng(seed)
    positions = rng.choice(math.prod(bounds), count, replace=False)
    entries: Any = rng.random(size=count), np.unravel_index(positions, bounds)  # stubs know matrices only
    return sp.coo_array(entries, shape=bounds)


def arguments(description: str, default: list[str]) -> argparse.Namespace:
    """The command line of benchmarks that race the relational plan, too."""
    parser = graph_parser(description, repeat=7)
    parser.add_argument("--without-relational", action="store_true", help="skip the relational plan, which takes long")
    return chosen_graphs(parser, default)


def graph_parser(description: str, repeat: int) -> argparse.ArgumentParser:
    """What the command lines of all benchmarks on graphs share."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", metavar="GRAPH", help=f"graphs to run on: {', '.join(SIZES)}")
    add_data_folder(parser)
    parser.add_argument("--repeat", type=int, default=repeat, help="runs of each; the median counts")
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures as JSON")
    return parser


def add_data_folder(parser: argparse.ArgumentParser) -> None:
    """The folder of real graphs; by default what SPARSEEINSUM_DATA names."""
    folder = os.environ.get("SPARSEEINSUM_DATA")
    parser.add_argument("--data", type=Path, default=Path(folder) if folder else None, help="folder of .npz graphs")


def chosen_graphs(parser: argparse.ArgumentParser, default: list[str]) -> argparse.Namespace:
    """What the command line asks for; graphs are those of the default where it names none."""
    asked = parser.parse_args()
    asked.graphs = asked.graphs or default
    for name in asked.graphs:
        if name not in SIZES:
            parser.error(f"there is no graph {name}; choose from {', '.join(SIZES)}")
    return asked
