"""Algebra, implementation: plans run on simulated sites, counting the floats that are transferred.

With arrays, a simulation shows what a plan computes, so that rules can be tested. Without arrays, it replays from keys
and bounds alone what any number of sites would send to each other.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sparseeinsum.algebra.implementation.site_operators import (
    Broadcast,
    LocalAggregation,
    LocalComplete,
    LocalFilter,
    LocalJoin,
    LocalMap,
    PlacedInput,
    Shuffle,
    SitePlan,
)
from sparseeinsum.algebra.relational.kernels import IDENTITY
from sparseeinsum.algebra.relational.keys import Key, all_keys
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.algebra.relational.tuples import ARRAYS, BOUNDS, Payloads, Tuples, completed, folded, mapped
from sparseeinsum.decompose.places.distribution import Hashed, Replicated
from sparseeinsum.decompose.places.traffic import Traffic
from sparseeinsum.errors import AlgebraError
from sparseeinsum.operators.dtypes import Array

TuplesBySite: TypeAlias = list[Tuples]

_FACTOR = 1_000_003  # odd, so that keys reach all sites, also if the number of sites is a power of 2


@dataclass(frozen=True, slots=True, eq=False)
class OperatorTraffic(Traffic):
    """The floats that one operator transferred.

    Attributes:
        plan: The broadcast or shuffle.
    """

    plan: SitePlan


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """A plan that ran on simulated sites.

    Attributes:
        sites: For every site, its tuples of the result.
        traffic: The transfers, in order.
    """

    sites: TuplesBySite
    traffic: tuple[OperatorTraffic, ...]

    @property
    def floats(self) -> float:
        """The floats that went from one site to another."""
        return sum(transfer.floats for transfer in self.traffic)

    def relation(self) -> dict[Key, Array]:
        """The tuples of all sites as one relation.

        Raises:
            AlgebraError: A key has two different arrays.
        """
        arrays: dict[Key, Array] = {}
        for key, array in (entry for site in self.sites for entry in site):
            if key in arrays and not np.array_equal(arrays[key], array, equal_nan=array.dtype.kind in "fc"):
                raise AlgebraError(f"the key {key} has two arrays")
            arrays[key] = array
        return arrays

    def is_everywhere(self) -> bool:
        """Whether ALL holds: every site has every tuple."""
        keys = [sorted(key for key, _ in site) for site in self.sites]
        return all(site_keys == keys[0] and len(set(site_keys)) == len(site_keys) for site_keys in keys)

    def is_partitioned(self, dims: Iterable[int]) -> bool:
        """Whether PART_D holds: every key occurs once, and keys that agree at the positions `dims` are on one site."""
        positions = tuple(dims)
        site_of: dict[Key, int] = {}
        stored: set[Key] = set()
        for number, site in enumerate(self.sites):
            for key, _ in site:
                site_key = tuple(key[position] for position in positions)
                if key in stored or site_of.setdefault(site_key, number) != number:
                    return False
                stored.add(key)
        return True


def simulate(plan: SitePlan, inputs: Mapping[str, Mapping[Key, Array]], sites: int) -> SimulatedRun:
    """Run a plan on simulated sites.

    Args:
        plan: The plan.
        inputs: The relations that it reads, by name.
        sites: The number of sites.
    """
    stored = {name: [(key, np.asarray(array)) for key, array in relation.items()] for name, relation in inputs.items()}
    return SimulatedRun(*_Simulation(ARRAYS, stored, sites).run(plan))


def replay(plan: SitePlan, sites: int, keys: Mapping[str, Iterable[Key]] | None = None) -> tuple[OperatorTraffic, ...]:
    """What a plan transfers between sites, from keys and bounds alone.

    Args:
        plan: The plan.
        sites: The number of sites.
        keys: The keys of inputs with holes, by name; other inputs have all keys below their frontier.

    Raises:
        AlgebraError: An input has holes, and `keys` lacks it, or it has too many keys.
    """
    known_keys = {name: list(node) for name, node in (keys or {}).items()}
    stored: dict[str, Tuples] = {}
    for node in topological_order(plan):
        if isinstance(node, PlacedInput) and node.input.name not in stored:
            input_keys = known_keys[node.input.name] if node.input.name in known_keys else _all_keys(node)
            stored[node.input.name] = [(key, node.type.bound) for key in input_keys]
    return _Simulation(BOUNDS, stored, sites).run(plan)[1]


def _all_keys(placed: PlacedInput) -> list[Key]:
    columns = placed.type.keys()
    if columns is None:
        raise AlgebraError(
            f"{placed.input.name} is {placed.type}: give its keys, or larger arrays, of which there are fewer"
        )
    return [tuple(key) for key in columns.T.tolist()]


@dataclass(frozen=True, slots=True)
class _Simulation:
    """Runs a plan on tuples of arrays, or of the bounds of arrays."""

    payloads: Payloads
    stored: Mapping[str, Tuples]
    sites: int

    def run(self, plan: SitePlan) -> tuple[TuplesBySite, tuple[OperatorTraffic, ...]]:
        results: dict[int, TuplesBySite] = {}
        traffic: list[OperatorTraffic] = []
        for node in topological_order(plan):
            inputs = [results[id(operand)] for operand in node.inputs]
            match node:
                case PlacedInput():
                    results[id(node)] = self._placed(node)
                case Broadcast() | Shuffle():
                    results[id(node)], transfer = self._moved(node, inputs[0])
                    traffic.append(transfer)
                case _:
                    results[id(node)] = [self._local(node, number, *operands) for number, operands in _by_site(inputs)]
        return results[id(plan)], tuple(traffic)

    def _placed(self, plan: PlacedInput) -> TuplesBySite:
        if plan.input.name not in self.stored:
            raise AlgebraError(f"no relation {plan.input.name} is given; there are {', '.join(self.stored) or 'none'}")
        tuples, distribution = self.stored[plan.input.name], plan.distribution
        if distribution == Replicated():
            return [list(tuples) for _ in range(self.sites)]
        by_site: TuplesBySite = [[] for _ in range(self.sites)]
        for number, (key, value) in enumerate(tuples):
            site = number % self.sites
            if isinstance(distribution, Hashed):
                site = site_of_key(distribution.axes, key, self.sites)
            by_site[site].append((key, value))
        return by_site

    def _moved(self, plan: Broadcast | Shuffle, origins: TuplesBySite) -> tuple[TuplesBySite, OperatorTraffic]:
        by_site: TuplesBySite = [[] for _ in range(self.sites)]
        sent, received = np.zeros(self.sites), np.zeros(self.sites)
        is_everywhere = plan.inputs[0].distribution == Replicated()
        for origin, tuples in enumerate(origins):
            for key, value in tuples:
                destinations = (
                    range(self.sites) if isinstance(plan, Broadcast) else (site_of_key(plan.dims, key, self.sites),)
                )
                for destination in destinations:
                    if is_everywhere and destination != origin:
                        continue  # the destination has the tuple already
                    by_site[destination].append((key, value))
                    if destination != origin:
                        sent[origin] += self.payloads.size(value)
                        received[destination] += self.payloads.size(value)
        return by_site, OperatorTraffic(sent, received, plan)

    def _local(self, plan: SitePlan, site: int, tuples: Tuples, other: Tuples | None = None) -> Tuples:
        match plan:
            case LocalJoin():
                assert other is not None
                pairs = plan.pairing.joined(tuples, other, self.payloads)
                return pairs if plan.keys is None else mapped(pairs, plan.keys, IDENTITY, self.payloads)
            case LocalAggregation(_, group_by, fold):
                return folded(tuples, group_by, fold, self.payloads)
            case LocalFilter(_, predicate):
                return [(key, value) for key, value in tuples if predicate.holds(key)]
            case LocalMap(_, keys, kernel):
                return mapped(tuples, keys, kernel, self.payloads)
            case LocalComplete(_, absent):
                site_keys = all_keys(plan.type.frontier)
                if isinstance(plan.distribution, Hashed):
                    axes = plan.distribution.axes
                    site_keys = [key for key in site_keys if site_of_key(axes, key, self.sites) == site]
                return completed(tuples, absent, site_keys, self.payloads)
            case _:
                raise TypeError(f"no local operator: {plan!r}")


def site_of_key(axes: Sequence[int], key: Key, sites: int) -> int:
    """The site of the tuple with a key, in a relation that is hashed by the parts at `axes`.

    >>> [site_of_key((1,), (0, part), 4) for part in range(6)]
    [0, 1, 2, 3, 0, 1]
    """
    number = 0
    for position in axes:
        number = number * _FACTOR + key[position]
    return number % sites


def _by_site(inputs: Sequence[TuplesBySite]) -> Iterable[tuple[int, tuple[Tuples, ...]]]:
    return enumerate(zip(*inputs, strict=True))
