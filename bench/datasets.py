"""The graphs of the SparseEinSum paper's table 1: real where there is a folder of them, else twins of their sizes."""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

from sparseeinsum.examples import Graph, citation_graph, read_graph


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


def graph_of(name: str, folder: Path | None) -> Graph:
    """A graph by name: `<folder>/<name>.npz` where there is one, else its twin."""
    path = folder / f"{name}.npz" if folder else None
    if path is not None and path.is_file():
        return read_graph(path)
    sizes = SIZES[name]
    return citation_graph(sizes.nodes, sizes.edges, sizes.features, sizes.entries, name=f"{name} (twin)")


def arguments(description: str, default: list[str]) -> argparse.Namespace:
    """The command line that all benchmarks share."""
    parser = argparse.ArgumentParser(description=description)
    folder = os.environ.get("SPARSEEINSUM_DATA")
    parser.add_argument("graphs", nargs="*", metavar="GRAPH", help=f"graphs to run on: {', '.join(SIZES)}")
    parser.add_argument("--data", type=Path, default=Path(folder) if folder else None, help="folder of .npz graphs")
    parser.add_argument("--repeat", type=int, default=7, help="runs of each; the median counts")
    parser.add_argument("--without-relational", action="store_true", help="skip the relational plan, which takes long")
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures as JSON")
    asked = parser.parse_args()
    asked.graphs = asked.graphs or default
    for name in asked.graphs:
        if name not in SIZES:
            parser.error(f"there is no graph {name}; choose from {', '.join(SIZES)}")
    return asked
