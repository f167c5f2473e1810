"""Contraction orders are optimal for few factors, never worse than opt_einsum's, and quick to find."""

import functools
import math
import random
from collections.abc import Iterator

import pytest
from opt_einsum import paths

from sparseeinsum.rewrite.contraction_network import ContractionEstimates, ContractionNetwork, Tree
from sparseeinsum.rewrite.contraction_order import (
    EXACT_FACTORS,
    find_contraction_order,
    groups_in_order,
    path_of_tree,
    search_exactly,
    tree_of_path,
)
from sparseeinsum.statistics.estimate import LabelStatistics, Statistics


def network(
    subscripts: str, sizes: dict[str, int], entries: list[float] | None = None, dtypes: tuple[str, ...] | None = None
) -> ContractionNetwork:
    """Factors with these numbers of entries, spread evenly; dense by default."""
    inputs, output = subscripts.split("->")
    terms = inputs.split(",")
    factors = []
    for position, term in enumerate(terms):
        most = float(math.prod(sizes[label] for label in term))
        present = min(entries[position], most) if entries else most
        distinct = tuple(min(float(sizes[label]), present) for label in term)
        factors.append(
            LabelStatistics(tuple(term), Statistics(present, distinct, tuple(sizes[label] for label in term)))
        )
    return ContractionNetwork(tuple(factors), dtypes or ("float64",) * len(terms), frozenset(output), sizes)


def order_of(network: ContractionNetwork) -> Tree:
    return find_contraction_order(ContractionEstimates(network))


def random_network(count: int, seed: int, sparse: bool, largest: int = 9) -> ContractionNetwork:
    """Every label joins two or three factors or is in the result; some densities are one in a thousand."""
    chance = random.Random(seed)
    terms = [""] * count
    sizes: dict[str, int] = {}
    for number in range(3 * count // 2):
        label = chr(ord("a") + number) if number < 26 else chr(200 + number)
        sizes[label] = chance.randint(2, largest)
        for position in chance.sample(range(count), min(count, chance.choice([1, 2, 2, 2, 3]))):
            terms[position] += label
    output = "".join(chance.sample(sorted(sizes), seed % 3))
    shares = [10 ** chance.uniform(-3, 0) if sparse else 1.0 for _ in terms]
    places = [math.prod(sizes[label] for label in term) for term in terms]
    entries = [max(1.0, share * size) for share, size in zip(shares, places, strict=True)]
    return network(f"{','.join(terms)}->{output}", sizes, entries)


def all_trees(groups: tuple[int, ...]) -> Iterator[Tree]:
    """Every binary tree over some groups."""
    if len(groups) == 1:
        yield {}
        return
    first, *others = groups
    for chosen in range(2 ** len(others) - 1):
        left = (first, *(group for position, group in enumerate(others) if chosen >> position & 1))
        right = tuple(group for group in others if group not in left)
        for one in all_trees(left):
            for two in all_trees(right):
                yield {sum(groups): (sum(left), sum(right))} | one | two


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("seed", range(3))
def test_the_exact_search_finds_what_brute_force_finds(count: int, seed: int, sparse: bool) -> None:
    estimates = ContractionEstimates(random_network(count, seed, sparse))
    order = search_exactly(estimates, [1 << position for position in range(count)])
    trees = list(all_trees(tuple(1 << position for position in range(count))))
    assert len(trees) == math.prod(range(1, 2 * count - 2, 2))
    assert estimates.cost(order) == pytest.approx(min(map(estimates.cost, trees)), rel=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("count", [3, 6, 8, 9, 12, 15, 25, 60])
@pytest.mark.parametrize("seed", range(2))
def test_orders_are_never_worse_than_those_of_opt_einsum(count: int, seed: int, sparse: bool) -> None:
    estimates = ContractionEstimates(random_network(count, seed, sparse, largest=9 if count < 30 else 3))
    order = find_contraction_order(estimates)
    inputs = [frozenset(factor.labels) for factor in estimates.network.factors]
    for search in (paths.auto, paths.greedy):
        other_order = tree_of_path(search(inputs, estimates.network.output, estimates.network.bounds), count)
        theirs_cost = estimates.cost(other_order)
        assert estimates.cost(order) <= theirs_cost * (1 + 1e-9)


def test_sparsity_changes_the_order() -> None:
    sizes = dict.fromkeys("ijkl", 1000)
    dense_first = network("ij,jk,kl->il", sizes | {"i": 900}, [9e5, 1e6, 1e6])
    assert order_of(dense_first)[0b111] == (0b011, 0b100)
    sparse_last = network("ij,jk,kl->il", sizes | {"i": 900}, [9e5, 2e3, 2e3])
    assert order_of(sparse_last)[0b111] == (0b001, 0b110)


def test_small_outer_products_come_before_a_large_tensor() -> None:
    order = order_of(network("ijk,i,j->k", {"i": 30, "j": 30, "k": 10_000}, [9e6, 2, 2]))
    assert order[0b111] == (0b001, 0b110)


def test_singles_beside_a_double_are_not_multiplied_alone() -> None:
    """Beside a float64, two float32 are never multiplied alone, whatever the saving."""
    cheap = network("ij,jk,kl->il", {"i": 2, "j": 500, "k": 2, "l": 500}, None, ("float32", "float32", "float64"))
    assert 0b011 not in order_of(cheap)
    chain = ",".join(f"{chr(97 + n)}{chr(98 + n)}" for n in range(12))
    sizes = {chr(97 + n): 5 for n in range(13)}
    order = order_of(network(f"{chain}->am", sizes, None, ("float32",) * 11 + ("float64",)))
    assert all(group >> 11 & 1 for group in order)


def test_paths_and_trees_are_equivalent() -> None:
    assert path_of_tree({0b111: (0b001, 0b110), 0b110: (0b010, 0b100)}, 3) == [(1, 2), (0, 1)]
    for seed in range(5):
        tree = order_of(random_network(7, seed, sparse=True))
        again = tree_of_path(path_of_tree(tree, 7), 7)
        assert {group: set(parts) for group, parts in again.items()} == {
            group: set(parts) for group, parts in tree.items()
        }


def test_the_same_network_gives_the_same_order() -> None:
    assert order_of(random_network(40, 1, sparse=True)) == order_of(random_network(40, 1, sparse=True))


@pytest.mark.parametrize("factors", [1, EXACT_FACTORS, EXACT_FACTORS + 1])
def test_every_factor_is_contracted_once(factors: int) -> None:
    subscripts = ",".join("abcdefghi"[:factors]) + "->"
    order = order_of(network(subscripts, dict.fromkeys("abcdefghi", 3)))
    assert len(order) == factors - 1
    assert functools.reduce(lambda done, group: done | group, order, 0) == (2**factors - 1 if order else 0)
    groups = {1 << position for position in range(factors)}
    for group in groups_in_order(order):
        assert set(order[group]) <= groups
        assert sum(order[group]) == group
        groups = (groups - set(order[group])) | {group}


@pytest.mark.parametrize(
    ("subscripts", "most"),
    [
        (",".join(f"{chr(200 + n)}{chr(201 + n)}" for n in range(8)), 3_025),
        (",".join(f"{chr(200 + n)}{chr(201 + n)}" for n in range(300)), 100_000),
        (",".join(f"x{chr(200 + n)}" for n in range(200)), 100_000),  # a label of all factors
        (",".join(chr(200 + n) for n in range(200)), 100_000),  # only outer products
    ],
)
def test_search_time_is_limited(subscripts: str, most: int) -> None:
    """A join takes some 50 us to consider."""
    sizes = {label: 2 for label in subscripts if label != ","}
    estimates = ContractionEstimates(network(f"{subscripts}->", sizes))
    order = find_contraction_order(estimates)
    assert estimates.visited_joins <= most
    assert len(order) == subscripts.count(",")


@pytest.mark.parametrize("factors", [6, 8, 12, 30, 80])
def test_a_search_takes_a_share_of_the_run(factors: int) -> None:
    """Small networks are searched for milliseconds, and large ones as if there were no limit."""
    small, large = (random_network(factors, 3, sparse=False, largest=largest) for largest in (2, 60))
    estimates, unlimited = ContractionEstimates(small), ContractionEstimates(small)
    order, best = find_contraction_order(estimates, 0.1), find_contraction_order(unlimited)
    assert set(order) >= {small.everything}
    assert estimates.visited_joins <= min(unlimited.visited_joins, max(300, 4 * factors + 1e-4 * estimates.cost(order)))
    assert estimates.cost(order) >= unlimited.cost(best)
    estimates, unlimited = ContractionEstimates(large), ContractionEstimates(large)
    if unlimited.cost(find_contraction_order(unlimited)) > 1e12:
        assert find_contraction_order(estimates, 0.1) == find_contraction_order(unlimited)
