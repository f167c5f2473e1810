"""Rewriting: finds the order in which to contract the factors of a network, two at a time.

Orders are compared by the expected numbers of multiplications and of entries of results, or by another cost of joins,
such as what several workers send. Entries that equal the fill do not count, because dense sizes mislead where operands
are sparse. Few factors are searched exhaustively. For many,
greedy orders and those of opt_einsum are improved by exhaustive searches of parts of the tree. The search is
deterministic: the same network gives the same order.
"""

import bisect
import heapq
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from opt_einsum import paths

from sparseeinsum.rewrite.contraction_network import ContractionEstimates, Tree

EXACT_FACTORS = 8  # 3,025 pairs of groups: 0.1 s
_REFINED_FACTORS = 6  # 301 pairs
_FEW_FACTORS = 20  # up to which parts of a tree have EXACT_FACTORS, not _REFINED_FACTORS
_ALWAYS_EXACT_FACTORS = 5  # 90 pairs: 4 ms
_MOST_AUTO_FACTORS = 14  # from which on opt_einsum's `auto` is its `greedy`
_MOST_TRIALS = 24
_MOST_JOINS = 20_000  # after so many, about 1 s, no other greedy order is tried
_CHEAP_WORK = 100_000.0  # multiplications and entries; to compute them takes less time than a further search
_MOST_PARTNERS = 12  # that a group is compared with, where many groups have one label
_LEAST_WORK_SHARE = 1e-3  # of the whole work; parts of the tree with less are left as they are
_TEMPERATURES = (1.0, 0.3)
_SHARES = (0.5, 1.0)

# Seconds of a multiplication or an entry in a run, and of a join that the search looks at.
_SECONDS_OF_WORK = 5e-8
_SECONDS_OF_JOIN = 5e-5
_LEAST_JOINS = 40  # 2 ms


def find_contraction_order(estimates: ContractionEstimates, share_of_run: float = math.inf) -> Tree:
    """The cheapest order that the search finds; without a limit the cheapest of all for up to EXACT_FACTORS factors.

    Args:
        estimates: Expected sizes.
        share_of_run: The most time to search, as a share of the time that the order of opt_einsum is expected to take.
            It is counted in joins that the search looks at, so that the same network gives the same order.
    """
    count = len(estimates.network.factors)
    factors = [1 << position for position in range(count)]
    if count <= _ALWAYS_EXACT_FACTORS:
        return search_exactly(estimates, factors)
    candidates = list(_opt_einsum_orders(estimates))
    work = min(map(estimates.cost, candidates), default=math.inf)
    most_joins = max(share_of_run * work * _SECONDS_OF_WORK / _SECONDS_OF_JOIN, _LEAST_JOINS)
    if count <= EXACT_FACTORS and _count_pairs(count) <= most_joins:
        return search_exactly(estimates, factors)
    most_visited = estimates.visited_joins + most_joins
    if not candidates or most_joins > _LEAST_JOINS:
        candidates += _greedy_orders(estimates, most_visited)
    best = min(candidates, key=estimates.cost)
    return _with_parts_searched_exactly(estimates, best, most_visited)


def _count_pairs(factors: int) -> int:
    """The pairs of groups that an exact search looks at."""
    return (int(3**factors) + 1) // 2 - int(2**factors)


def search_exactly(estimates: ContractionEstimates, units: Sequence[int]) -> Tree:
    """The cheapest of all binary trees over the groups `units`, by dynamic programming over their subsets.

    It looks at 3^n pairs for n groups, outer products included.
    """
    groups = _unions(units)
    costs: dict[int, float] = {1 << position: 0.0 for position in range(len(units))}
    splits: dict[int, tuple[int, int]] = {}
    for subset in range(1, 1 << len(units)):
        if subset in costs or not estimates.is_precise(groups[subset]):
            continue
        best = math.inf
        for first, second in _halves(subset):
            if first not in costs or second not in costs:
                continue
            cost = costs[first] + costs[second] + estimates.join_cost(groups[first], groups[second])
            if cost < best:
                best, splits[subset] = cost, (first, second)
        if best < math.inf:
            costs[subset] = best + estimates.result_cost(groups[subset])
    return _tree(splits, groups)


def _unions(units: Sequence[int]) -> list[int]:
    """For every subset of `units`, at the index whose bits are its members, the union of its groups."""
    groups = [0]
    for unit in units:
        groups.extend([group | unit for group in groups])
    return groups


def _halves(subset: int) -> Iterator[tuple[int, int]]:
    """Every partition of a set into two, each once: the first half has the lowest member."""
    lowest = subset & -subset
    others = part = subset ^ lowest
    while part:
        yield lowest | (others ^ part), part
        part = (part - 1) & others


def _tree(splits: dict[int, tuple[int, int]], groups: list[int]) -> Tree:
    """The tree of `splits`, whose subsets are replaced by groups of factors."""
    tree: Tree = {}
    waiting = [len(groups) - 1]
    while waiting:
        subset = waiting.pop()
        if subset in splits:
            first, second = splits[subset]
            tree[groups[subset]] = groups[first], groups[second]
            waiting += [first, second]
    return tree


def _opt_einsum_orders(estimates: ContractionEstimates) -> Iterator[Tree]:
    """The orders that opt_einsum proposes for dense factors."""
    network = estimates.network
    inputs = [frozenset(factor.labels) for factor in network.factors]
    sizes = {label: max(bound, 1) for label, bound in network.bounds.items()}
    # For many factors, the two are the same.
    for search in (paths.auto, paths.greedy) if len(inputs) <= _MOST_AUTO_FACTORS else (paths.greedy,):
        tree = tree_of_path(search(inputs, network.output, sizes), len(inputs))
        if all(map(estimates.is_precise, tree)):
            yield tree


def tree_of_path(path: Sequence[Sequence[int]], count: int) -> Tree:
    """A path in opt_einsum's format as a tree; a step of more than two operands joins them from left to right."""
    tree: Tree = {}
    for _, joins in steps_of_path(path, count):
        tree |= joins
    return tree


def steps_of_path(path: Sequence[Sequence[int]], count: int) -> Iterator[tuple[int, Tree]]:
    """For every step of a path in opt_einsum's format, the group that it makes, and its joins from left to right."""
    waiting = [1 << position for position in range(count)]
    for step in path:
        joins: Tree = {}
        group, *others = [waiting[position] for position in step]
        for position in sorted(step, reverse=True):
            del waiting[position]
        for other in others:
            joins[group | other] = group, other
            group |= other
        waiting.append(group)
        yield group, joins


def path_of_tree(tree: Tree, count: int) -> list[tuple[int, ...]]:
    """A tree as a path in opt_einsum's format: each step has the positions of its operands, and appends its result."""
    waiting = [1 << position for position in range(count)]
    path: list[tuple[int, ...]] = []
    for group in groups_in_order(tree):
        first, second = sorted(waiting.index(part) for part in tree[group])
        path.append((first, second))
        del waiting[second], waiting[first]
        waiting.append(group)
    return path


def groups_in_order(tree: Tree) -> list[int]:
    """The groups of a tree in an order in which they can be computed."""
    return sorted(tree, key=int.bit_count)


def _greedy_orders(estimates: ContractionEstimates, most_visited: float) -> Iterator[Tree]:
    """Greedy orders, until one is cheap or so many joins were visited.

    Two follow the estimates alone, the others have noise from a fixed seed.
    """
    chance = random.Random(0)
    most_visited = min(most_visited, estimates.visited_joins + _MOST_JOINS)
    for trial in range(_MOST_TRIALS):
        temperature = _TEMPERATURES[trial // 2 % 2] if trial > 1 else 0.0
        order = _Greedy(estimates, chance, temperature, _SHARES[trial % 2]).order()
        yield order
        if estimates.visited_joins > most_visited or estimates.cost(order) <= _CHEAP_WORK:
            return


@dataclass(slots=True)
class _Greedy:
    """Repeatedly joins the two groups with a common label that cost least for the entries that they remove.

    Attributes:
        estimates: Expected sizes.
        chance: The source of noise.
        temperature: The amount of noise; 0 for none.
        share: How much the entries that are removed count against the work.
        tree: The joins so far.
        alive: The groups that are not joined yet.
        holders: For every label, the groups that have it.
        queue: Pairs of groups, the cheapest first.
    """

    estimates: ContractionEstimates
    chance: random.Random
    temperature: float
    share: float
    tree: Tree = field(default_factory=dict)
    alive: set[int] = field(default_factory=set)
    holders: dict[str, set[int]] = field(default_factory=dict)
    queue: list[tuple[float, int, int, int]] = field(default_factory=list)

    def order(self) -> Tree:
        """Join all groups; returns the tree."""
        for position in range(len(self.estimates.network.factors)):
            self._enter(1 << position)
        while self.queue:
            _, _, first, second = heapq.heappop(self.queue)
            if first in self.alive and second in self.alive:
                self._join(first, second)
        self._join_remaining()
        return self.tree

    def _enter(self, group: int) -> None:
        labels = self.estimates.labels(group)
        partners = set().union(*(self.holders.get(label, ()) for label in labels)) & self.alive
        for partner in heapq.nsmallest(
            _MOST_PARTNERS, partners, key=lambda other: (self.estimates.entries(other), other)
        ):
            if self.estimates.is_precise(group | partner):
                heapq.heappush(self.queue, (self._score(group, partner), len(self.queue), group, partner))
        self.alive.add(group)
        for label in labels:
            self.holders.setdefault(label, set()).add(group)

    def _score(self, first: int, second: int) -> float:
        estimates = self.estimates
        work = estimates.join(first, second) + estimates.entries(first | second)
        removed = estimates.entries(first) + estimates.entries(second)
        noise = -math.log(self.chance.expovariate(1.0) + 1e-300) * self.temperature if self.temperature else 0.0
        return math.log(work + 1.0) - self.share * math.log(removed + 1.0) - noise

    def _join(self, first: int, second: int) -> None:
        self.estimates.join(first, second)
        self.tree[first | second] = first, second
        self.alive -= {first, second}
        for group in (first, second):
            for label in self.estimates.labels(group):
                self.holders[label].discard(group)
        self._enter(first | second)

    def _join_remaining(self) -> None:
        """Join the groups that have no label in common, the smallest first: outer products."""
        groups = sorted((self.estimates.entries(group), group) for group in self.alive)
        while len(groups) > 1:
            first, second = self._first_pair([group for _, group in groups])
            groups = [(entries, group) for entries, group in groups if group not in (first, second)]
            self.estimates.join(first, second)
            self.tree[first | second] = first, second
            bisect.insort(groups, (self.estimates.entries(first | second), first | second))

    def _first_pair(self, groups: list[int]) -> tuple[int, int]:
        pairs = ((first, second) for end, second in enumerate(groups) for first in groups[:end])
        return next(pair for pair in pairs if self.estimates.is_precise(pair[0] | pair[1]))


def _with_parts_searched_exactly(estimates: ContractionEstimates, tree: Tree, most_visited: float) -> Tree:
    """The tree, with parts of it that have enough work searched exactly, the most expensive first.

    It ends where the next part would need more visited joins than `most_visited`.
    """
    most_factors = EXACT_FACTORS if len(estimates.network.factors) <= _FEW_FACTORS else _REFINED_FACTORS
    least_work = estimates.cost(tree) * _LEAST_WORK_SHARE
    work = {group: estimates.join_cost(*tree[group]) + estimates.result_cost(group) for group in tree}
    for group in sorted(work, key=lambda group: (-work[group], group)):
        if work[group] < least_work:
            break
        if group in tree:
            units, inner = _upper_part(estimates, tree, group, most_factors)
            if estimates.visited_joins + _count_pairs(len(units)) > most_visited:
                break
            for inner_group in inner:
                del tree[inner_group]
            tree |= search_exactly(estimates, units)
    return tree


def _upper_part(estimates: ContractionEstimates, tree: Tree, group: int, most: int) -> tuple[list[int], list[int]]:
    """A part of the tree below `group`: the groups at its lower end, at most `most`, and those above them.

    The largest group is split into its two first.
    """
    units, inner = [group], []
    while len(units) < most:
        opened = max((unit for unit in units if unit in tree), key=estimates.entries, default=None)
        if opened is None:
            break
        units.remove(opened)
        units += tree[opened]
        inner.append(opened)
    return units, inner
