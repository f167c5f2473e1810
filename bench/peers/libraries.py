"""Libraries: what each can do of the workloads, and how it gets its data; those that are not installed say so."""

import importlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import metadata

from bench.peers.workloads import Data, Workload

Run = Callable[[], object]


class UnavailableError(Exception):
    """A library does not do a workload; the message says why, in a few words."""


@dataclass(frozen=True)
class Library:
    """A library with its threads set.

    Attributes:
        name: What the table calls it.
        prepare: Gets a workload and returns what computes it from loaded data; raises UnavailableError. The stack
            closes what the data are in.
        plain: Turns a result of a workload into what `results.entries` takes.
    """

    name: str
    prepare: Callable[[Workload, ExitStack], Run]
    plain: Callable[[object, Workload], object]


@dataclass(frozen=True)
class Distribution:
    """A library that may be installed.

    Attributes:
        name: What the table calls it.
        package: What `pip` calls it.
        module: Its module here, which has a function `library` of the number of threads.
    """

    name: str
    package: str
    module: str

    def version(self) -> str:
        """Its version; empty if it is not installed."""
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return ""

    def library(self, threads: int) -> Library:
        """The library; it is imported only now."""
        library: Library = importlib.import_module(f"bench.peers.{self.module}").library(threads)
        return library


DISTRIBUTIONS = (
    Distribution("scipy", "scipy", "scipy_matrices"),
    Distribution("numpy", "numpy", "numpy_arrays"),
    Distribution("torch", "torch", "torch_matrices"),
    Distribution("GraphBLAS", "python-graphblas", "graphblas_matrices"),
    Distribution("sparse", "sparse", "sparse_arrays"),
    Distribution("DuckDB", "duckdb", "duckdb_tables"),
    Distribution("Hyper", "tableauhyperapi", "hyper_tables"),
)


def of_arrays(works: Mapping[str, Callable[[Mapping[str, Data]], Run]]) -> Callable[[Workload, ExitStack], Run]:
    """`Library.prepare` of a library that has a function for each kind of workload; these get the inputs."""

    def prepare(workload: Workload, _: ExitStack) -> Run:
        if workload.kind not in works:
            raise UnavailableError("-")
        return works[workload.kind](workload.inputs)

    return prepare
