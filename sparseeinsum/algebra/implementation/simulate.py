"""Algebra, implementation: plans run on simulated sites, counting the floats that move; with arrays, or without.

With arrays it is what plans mean, against which rules are tested; without, it replays what moves between any number of
sites from keys and bounds alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sparseeinsum.algebra.implementation.placements import PlacementKind, site_of_key
from sparseeinsum.algebra.implementation.site_operators import (
    Broadcast,
    LocalAggregation,
    LocalComplete,
    LocalFilter,
    LocalJoin,
    LocalMap,
    Placed,
    Shuffle,
    SitePlan,
)
from sparseeinsum.algebra.relational.kernels import IDENTITY
from sparseeinsum.algebra.relational.keys import Key, all_keys
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.algebra.relational.tuples import ARRAYS, BOUNDS, Payloads, Tuples, completed, folded, mapped
from sparseeinsum.errors import AlgebraError
from sparseeinsum.operators.dtypes import Array

TuplesBySite: TypeAlias = list[Tuples]


@dataclass(frozen=True, slots=True)
class OperatorTraffic:
    """What one operator moved.

    Attributes:
        plan: A broadcast or a shuffle.
        sent: Floats that each site sent to others.
        received: Floats that each site received from others.
    """

    plan: SitePlan
    sent: tuple[int, ...]
    received: tuple[int, ...]

    @property
    def floats(self) -> int:
        """That went from one site to another."""
        return sum(self.sent)


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """A plan that ran on simulated sites.

    Attributes:
        sites: For every site, the tuples of the result that it has.
        traffic: What moved, in order.
    """

    sites: TuplesBySite
    traffic: tuple[OperatorTraffic, ...]

    @property
    def floats(self) -> int:
        """That went from one site to another."""
        return sum(each.floats for each in self.traffic)

    def relation(self) -> dict[Key, Array]:
        """The tuples without their sites.

        Raises:
            AlgebraError: A key has two arrays.
        """
        found: dict[Key, Array] = {}
        for key, array in (each for site in self.sites for each in site):
            if key in found and not np.array_equal(found[key], array, equal_nan=array.dtype.kind in "fc"):
                raise AlgebraError(f"the key {key} has two arrays")
            found[key] = array
        return found

    def is_everywhere(self) -> bool:
        """Whether ALL holds: each site has every tuple."""
        keys = [sorted(key for key, _ in site) for site in self.sites]
        return all(each == keys[0] and len(set(each)) == len(each) for each in keys)

    def is_partitioned(self, dims: Iterable[int]) -> bool:
        """Whether PART_D holds: every key is there once, and keys that agree at these positions are on one site."""
        chosen = tuple(dims)
        where: dict[Key, int] = {}
        seen: set[Key] = set()
        for number, site in enumerate(self.sites):
            for key, _ in site:
                parts = tuple(key[position] for position in chosen)
                if key in seen or where.setdefault(parts, number) != number:
                    return False
                seen.add(key)
        return True


def simulate(plan: SitePlan, inputs: Mapping[str, Mapping[Key, Array]], sites: int) -> SimulatedRun:
    """Run a plan on so many sites.

    Args:
        plan: What to run.
        inputs: Relations by name.
        sites: How many there are.
    """
    stored = {name: [(key, np.asarray(array)) for key, array in found.items()] for name, found in inputs.items()}
    return SimulatedRun(*_Simulation(ARRAYS, stored, sites).run(plan))


def replay(plan: SitePlan, sites: int, keys: Mapping[str, Iterable[Key]] | None = None) -> tuple[OperatorTraffic, ...]:
    """What a plan moves between so many sites, from keys and bounds alone.

    Args:
        plan: What to replay.
        sites: How many there are.
        keys: Of inputs with holes, by name; the others have all keys below their frontier.

    Raises:
        AlgebraError: An input has holes, and its keys are not given, or it has too many keys.
    """
    given = {name: list(each) for name, each in (keys or {}).items()}
    stored: dict[str, Tuples] = {}
    for each in topological_order(plan):
        if isinstance(each, Placed) and each.input.name not in stored:
            found = given[each.input.name] if each.input.name in given else _all_keys(each)
            stored[each.input.name] = [(key, each.type.bound) for key in found]
    return _Simulation(BOUNDS, stored, sites).run(plan)[1]


def _all_keys(placed: Placed) -> list[Key]:
    columns = placed.type.keys()
    if columns is None:
        raise AlgebraError(
            f"{placed.input.name} is {placed.type}: give its keys, or larger arrays, of which there are fewer"
        )
    return [tuple(key) for key in columns.T.tolist()]


@dataclass(frozen=True, slots=True)
class _Simulation:
    payloads: Payloads
    stored: Mapping[str, Tuples]
    sites: int

    def run(self, plan: SitePlan) -> tuple[TuplesBySite, tuple[OperatorTraffic, ...]]:
        found: dict[int, TuplesBySite] = {}
        traffic: list[OperatorTraffic] = []
        for each in topological_order(plan):
            inputs = [found[id(operand)] for operand in each.inputs]
            match each:
                case Placed():
                    found[id(each)] = self._placed(each)
                case Broadcast() | Shuffle():
                    found[id(each)], moved = self._moved(each, inputs[0])
                    traffic.append(moved)
                case _:
                    found[id(each)] = [self._local(each, number, *parts) for number, parts in _by_site(inputs)]
        return found[id(plan)], tuple(traffic)

    def _placed(self, plan: Placed) -> TuplesBySite:
        if plan.input.name not in self.stored:
            raise AlgebraError(f"no relation {plan.input.name} is given; there are {', '.join(self.stored) or 'none'}")
        tuples, placement = self.stored[plan.input.name], plan.placement
        if placement.is_everywhere:
            return [list(tuples) for _ in range(self.sites)]
        found: TuplesBySite = [[] for _ in range(self.sites)]
        for number, (key, value) in enumerate(tuples):
            is_partitioned = placement.kind == PlacementKind.PARTITIONED
            site = site_of_key(placement.dims, key, self.sites) if is_partitioned else number % self.sites
            found[site].append((key, value))
        return found

    def _moved(self, plan: Broadcast | Shuffle, given: TuplesBySite) -> tuple[TuplesBySite, OperatorTraffic]:
        found: TuplesBySite = [[] for _ in range(self.sites)]
        sent, received = [0] * self.sites, [0] * self.sites
        is_everywhere = plan.inputs[0].placement.is_everywhere
        for origin, tuples in enumerate(given):
            for key, value in tuples:
                goals = range(self.sites) if isinstance(plan, Broadcast) else (site_of_key(plan.dims, key, self.sites),)
                for goal in goals:
                    if is_everywhere and goal != origin:
                        continue  # it is there already
                    found[goal].append((key, value))
                    if goal != origin:
                        sent[origin] += self.payloads.size(value)
                        received[goal] += self.payloads.size(value)
        return found, OperatorTraffic(plan, tuple(sent), tuple(received))

    def _local(self, plan: SitePlan, site: int, given: Tuples, other: Tuples | None = None) -> Tuples:
        match plan:
            case LocalJoin():
                assert other is not None
                pairs = plan.pairing.joined(given, other, self.payloads)
                return pairs if plan.keys is None else mapped(pairs, plan.keys, IDENTITY, self.payloads)
            case LocalAggregation(_, group_by, fold):
                return folded(given, group_by, fold, self.payloads)
            case LocalFilter(_, predicate):
                return [(key, value) for key, value in given if predicate.holds(key)]
            case LocalMap(_, keys, kernel):
                return mapped(given, keys, kernel, self.payloads)
            case LocalComplete(_, absent):
                dims, every = plan.placement.dims, all_keys(plan.type.frontier)
                if not plan.placement.is_everywhere:
                    every = [key for key in every if site_of_key(dims, key, self.sites) == site]
                return completed(given, absent, every, self.payloads)
            case _:
                raise TypeError(f"no local operator: {plan!r}")


def _by_site(inputs: Sequence[TuplesBySite]) -> Iterable[tuple[int, tuple[Tuples, ...]]]:
    return enumerate(zip(*inputs, strict=True))
