"""The dynamic programme finds the cheapest of all choices, and the baselines are what they claim to be."""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from planning_problems import MOST_PLANS, Problem, choices_of, drawn, priced_by_hand, problem_of

import sparseeinsum as se
from sparseeinsum.api.examples import ATTENTION
from sparseeinsum.api.graphs import GCN
from sparseeinsum.decompose.choice import Choice, reference_tiles, result_tiles
from sparseeinsum.decompose.cover import tree_rounds
from sparseeinsum.decompose.joint import search_by_cover, search_greedily, search_jointly
from sparseeinsum.decompose.optimizers import OPTIMIZERS
from sparseeinsum.decompose.settled_choices import search_unsettled
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.lowering import lower_text
from sparseeinsum.language.tensors import DEMOTED, Axis, Decomposition, Tensor
from sparseeinsum.statistics.estimate import Statistics


class TestTrees:
    """The dynamic programme is exact if no result is read twice."""

    K = 12

    def test_best_plans_are_the_best_of_all(self) -> None:
        for problem in drawn(is_tree=True, count=40):
            expected = problem.all_costs()[: self.K]
            plans = problem.optimise(k=self.K)
            assert [plan.seconds for plan in plans] == pytest.approx(expected, rel=1e-9)
            assert len({choices_of(plan) for plan in plans}) == len(plans)

    def test_best_plans_of_many_with_tiles_of_every_kind(self) -> None:
        for problem in priced_by_hand(is_tree=True, count=500):
            expected = problem.all_plans()[: self.K]
            plans = search_jointly(problem.task, self.K)
            assert [plan.choices for plan in plans] == [plan.choices for plan in expected]
            assert [plan.cost for plan in plans] == pytest.approx([plan.cost for plan in expected], rel=1e-9)

    def test_the_cover_is_exact_too(self) -> None:
        for problem in priced_by_hand(is_tree=True, count=50):
            plans = search_by_cover(problem.task, self.K)
            assert [plan.choices for plan in plans] == [plan.choices for plan in problem.all_plans()[: self.K]]

    def test_all_plans_are_found_once_if_k_is_large(self) -> None:
        for problem in drawn(is_tree=True, count=8):
            plans = problem.optimise(k=10 * MOST_PLANS)
            assert len(plans) == len({choices_of(plan) for plan in plans}) == len(problem.all_plans())
            assert [plan.seconds for plan in plans] == pytest.approx(problem.all_costs(), rel=1e-9)

    def test_first_plans_do_not_depend_on_k(self) -> None:
        for problem in drawn(is_tree=True, count=20):
            few, nine = problem.optimise(k=1), problem.optimise(k=9)
            assert few[0].seconds == pytest.approx(nine[0].seconds, rel=1e-9)

    def test_other_optimizers_find_nothing_better(self) -> None:
        for problem in drawn(is_tree=True, count=20):
            best = problem.optimise()[0].seconds
            assert all(problem.optimise(name)[0].seconds >= best * (1 - 1e-9) for name in OPTIMIZERS)

    def test_delivery_of_a_result_that_is_also_read_counts(self) -> None:
        """R is delivered as one array: columns, the cheapest for its reader, would have to be stacked."""
        inputs = {name: (Tensor(name, (Axis("i", 60),)), Statistics(30, (30,), (60,))) for name in ("A", "B", "C")}
        text = "R[i, j] = A[i] * B[j]\nS[j] = sum(R[i, j] * C[i])"
        stored = dict.fromkeys(inputs, Decomposition((DEMOTED,)))
        layouts = {"R": Decomposition((DEMOTED, DEMOTED)), "S": Decomposition((DEMOTED,))}
        delivered = problem_of(text, inputs, stored, layouts, outputs=("R",))
        not_delivered = problem_of(text, inputs, stored, layouts)
        assert not_delivered.optimise()[0].steps[0].promoted == {"j"}
        assert delivered.optimise()[0].steps[0].promoted == frozenset()
        assert delivered.optimise()[0].seconds == pytest.approx(delivered.all_costs()[0], rel=1e-9)

    def test_inputs_that_are_stored_nowhere_are_free_in_any_decomposition(self) -> None:
        """As in the paper's search; a choice is listed once though an input could have different decompositions."""
        inputs = {"A": (Tensor("A", (Axis("i", 30), Axis("j", 40))), Statistics(100, (30, 40), (30, 40)))}
        problem = problem_of("R[i] = sum(A[i, j])", inputs, {}, {})
        plans = problem.optimise(k=10)
        assert len(plans) == len({choices_of(plan) for plan in plans}) == 4
        assert all(step.repartition_seconds == 0 for plan in plans for step in plan.steps)


class TestSharedResults:
    """Choices of shared results are made together with all others, so that the best plans are found."""

    K = 12

    def test_best_plans_are_the_best_of_all(self) -> None:
        for problem in drawn(is_tree=False, count=60):
            expected = problem.all_costs()[: self.K]
            plans = problem.optimise(k=self.K)
            assert [plan.seconds for plan in plans] == pytest.approx(expected, rel=1e-9)
            assert len({choices_of(plan) for plan in plans}) == len(plans)

    def test_best_plans_of_many_with_tiles_of_every_kind(self) -> None:
        for problem in priced_by_hand(is_tree=False, count=200):
            expected = problem.all_plans()[: self.K]
            plans = search_jointly(problem.task, self.K)
            assert [plan.choices for plan in plans] == [plan.choices for plan in expected]
            assert [plan.cost for plan in plans] == pytest.approx([plan.cost for plan in expected], rel=1e-9)

    def test_short_lists_answer_if_tables_grow_too_large(self) -> None:
        better = 0
        for problem in priced_by_hand(is_tree=False, count=40):
            plans = search_jointly(problem.task, self.K, limit=30)
            costs = {plan.choices: plan.cost for plan in problem.all_plans()}
            assert [plan.cost for plan in plans] == pytest.approx([costs[plan.choices] for plan in plans], rel=1e-9)
            assert [plan.cost for plan in plans] == sorted(plan.cost for plan in plans)
            assert len({plan.choices for plan in plans}) == len(plans) == min(self.K, len(costs))
            (best,), (greedy,) = search_jointly(problem.task, 1, limit=30), search_greedily(problem.task, 1)
            assert best.cost <= greedy.cost
            better += best.cost < greedy.cost * (1 - 1e-9)
        assert better > 0

    def test_choices_are_settled_between_einsums_with_a_single_one(self) -> None:
        """Of every other EinSum, or of three in four, one choice is left, so that its neighbours depend on nothing."""
        settled = 0
        for number, problem in enumerate(priced_by_hand(is_tree=False, count=120)):
            chance, einsums = np.random.default_rng(number), problem.task.graph.einsums
            left = {name: list(choices) for name, choices in problem.task.choices.items()}
            for name, choices in left.items():
                if chance.random() < (0.5, 0.75)[number % 2]:
                    left[name] = [choices[chance.integers(len(choices))]]
            task = problem.task.narrowed(left)
            plans = problem.all_plans()
            expected = next(plan for plan in plans if all(choice in left[name] for name, choice in plan.choices))
            best = search_unsettled(task, einsums, math.inf)
            assert best is not None
            assert best.choices == expected.choices and best.cost == pytest.approx(expected.cost, rel=1e-9)
            settled += search_unsettled(task, einsums, 0) is not None  # no table was needed
        assert settled > 20

    def test_infinite_costs_leave_the_order_of_the_others(self) -> None:
        """Costs are infinite for joins of more pairs than a float can count."""
        for problem in priced_by_hand(is_tree=False, count=40, endless=0.1):
            expected = [plan for plan in problem.all_plans() if np.isfinite(plan.cost)][: self.K]
            plans = search_jointly(problem.task, self.K)
            assert [plan.choices for plan in plans[: len(expected)]] == [plan.choices for plan in expected]
            assert len(plans) == min(self.K, len(problem.all_plans()))

    def test_the_cover_is_no_better_and_hardly_worse(self) -> None:
        problems = list(drawn(is_tree=False, count=60))
        ratios = [problem.optimise("cover")[0].seconds / problem.optimise()[0].seconds for problem in problems]
        assert min(ratios) >= 1 - 1e-9
        assert max(ratios) <= 1.5
        assert np.mean(ratios) <= 1.05

    def test_the_cover_finds_better_plans_with_larger_k(self) -> None:
        """With k = 1 a shared result is fixed as its first reader prefers it, and the other readers pay."""
        problems = list(drawn(is_tree=False, count=60))
        best = [problem.optimise()[0].seconds for problem in problems]
        one, sixteen = ([problem.optimise("cover", k=k)[0].seconds for problem in problems] for k in (1, 16))
        assert max(np.divide(one, best)) > 1.1
        assert sixteen == pytest.approx(best, rel=1e-9)

    def test_all_plans_are_found_if_k_is_large(self) -> None:
        for problem in drawn(is_tree=False, count=8):
            plans = problem.optimise(k=10 * MOST_PLANS)
            assert len(plans) == len({choices_of(plan) for plan in plans}) == len(problem.all_plans())
            assert [plan.seconds for plan in plans] == pytest.approx(problem.all_costs(), rel=1e-9)

    def test_plans_are_in_order_without_duplicates(self) -> None:
        for problem in drawn(is_tree=False, count=20):
            plans = problem.optimise(k=12)
            seconds = [plan.seconds for plan in plans]
            assert seconds == pytest.approx(sorted(seconds), rel=1e-9)
            assert len({choices_of(plan) for plan in plans}) == len(plans)


class TestCover:
    def test_rounds_of_the_graph_network(self) -> None:
        """T1 is read twice: its first reader and all that leads there form one tree, the other readers the next."""
        names = [[einsum.output.tensor for einsum in round_] for round_ in tree_rounds(unbound(GCN))]
        assert names == [["T0", "T1", "T2", "T3", "H"], ["T4", "T5", "Y"]]

    def test_a_tree_is_one_round(self) -> None:
        assert len(tree_rounds(unbound(ATTENTION.format(root="32")))) == 1

    def test_an_operand_read_twice_by_one_statement_ends_a_round(self) -> None:
        graph = unbound("R[i, j] = exp(A[i, j])\nS[i, k] = sum(R[i, j] * R[j, k])")
        assert [[einsum.output.tensor for einsum in round_] for round_ in tree_rounds(graph)] == [["R"], ["S"]]

    def test_rounds_are_trees_and_maximal(self) -> None:
        for problem in drawn(is_tree=False, count=40):
            graph = problem.model.graph
            rounds = tree_rounds(graph)
            available = {name for name in graph.tensors if graph.producer_of(name) is None}
            for number, einsums in enumerate(rounds):
                here = {einsum.output.tensor for einsum in einsums}
                read = [operand.tensor for einsum in einsums for operand in einsum.operands if operand.tensor in here]
                assert len(read) == len(set(read))
                for later in itertools.chain.from_iterable(rounds[number + 1 :]):
                    expected = [operand.tensor for operand in later.operands if operand.tensor not in available]
                    fits = here.issuperset(expected) and len({*read, *expected}) == len(read) + len(expected)
                    assert not fits, f"{later.output.tensor} could be of this round"
                available |= here
            computed = [einsum for einsums in rounds for einsum in einsums]
            assert sorted(computed, key=graph.einsums.index) == list(graph.einsums)


def unbound(text: str) -> EinGraph:
    """A graph without shapes, for code that only follows which EinSum reads which."""
    program = lower_text(text)
    return EinGraph({}, program.einsums, program.outputs)


class TestBaselines:
    def test_greedy_takes_the_cheapest_choice_at_every_step(self) -> None:
        for problem in drawn(is_tree=True, count=30):
            assert problem.optimise("greedy")[0].seconds == pytest.approx(
                problem.price(greedy_choices(problem)), rel=1e-9
            )

    def test_greedy_may_be_worse(self) -> None:
        ratios = [
            problem.optimise("greedy")[0].seconds / problem.optimise()[0].seconds
            for problem in drawn(is_tree=True, count=60)
        ]
        assert min(ratios) >= 1 - 1e-9
        assert max(ratios) > 1.2

    def test_relational_promotes_all_labels(self) -> None:
        for problem in drawn(is_tree=False, count=20):
            (plan,) = problem.optimise("relational", k=3)
            assert all(step.promoted == frozenset(step.einsum.labels) for step in plan.steps)

    def test_dense_promotes_no_label(self) -> None:
        for problem in drawn(is_tree=False, count=20):
            (plan,) = problem.optimise("dense", k=3)
            assert all(step.promoted == frozenset() for step in plan.steps)

    def test_price_is_that_of_the_choices(self) -> None:
        for name, problem in itertools.product(OPTIMIZERS, drawn(is_tree=False, count=5)):
            (plan,) = problem.optimise(name)
            assert plan.seconds == problem.price({step.einsum.output.tensor: step.choice for step in plan.steps})
            assert plan.seconds == pytest.approx(plan.work.seconds(problem.model.constants), rel=1e-9)

    @pytest.mark.parametrize(
        ("name", "hint"), [("greddy", "did you mean greedy"), ("exact", "dp, cover, greedy, relational, dense")]
    )
    def test_unknown_optimizer(self, db: se.Database, name: str, hint: str) -> None:
        db.tensor("A", np.eye(3))
        with pytest.raises(PlanError, match=hint):
            db.plan("B[i] = sum(A[i, j])", optimizer=name)


class TestManyLabels:
    """With too many labels to consider all subsets, large ones are still promoted one by one."""

    @pytest.fixture
    def tensors(self, db: se.Database) -> dict[str, NDArray[np.float64]]:
        rng = np.random.default_rng(0)
        tensors = {"A": rng.normal(size=(2,) * 9 + (30,)), "B": rng.normal(size=(30,) + (2,) * 5)}
        for name, array in tensors.items():
            db.tensor(name, array)
        return tensors

    @pytest.mark.parametrize("optimizer", OPTIMIZERS)
    @pytest.mark.parametrize("first", ["a", "A"])
    def test_results(
        self, db: se.Database, tensors: dict[str, NDArray[np.float64]], optimizer: str, first: str
    ) -> None:
        text = f"Y[{first}, o] = sum(A[{first}, b, c, d, e, f, g, h, i, x] * B[x, k, l, m, n, o])"
        if optimizer == "dense" and first == "A":
            with pytest.raises(PlanError, match="promoted by hand"):
                db.plan(text, optimizer=optimizer, rewrite=False)
            return
        plan = db.plan(text, optimizer=optimizer, rewrite=False)
        expected = np.einsum("abcdefghix,xklmno->ao", *tensors.values(), optimize=True)
        np.testing.assert_allclose(db.run(plan)["Y"].to_numpy(), expected)

    def test_the_largest_labels_are_promoted(self, db: se.Database) -> None:
        entries = (np.vstack([np.zeros((9, 50), int), np.arange(50) * 1999]), np.ones(50))
        db.tensor("A", entries, shape=(2,) * 9 + (100_000,))
        (line,) = db.plan("Y[x] = sum(A[a, b, c, d, e, f, g, h, i, x])").notation()
        assert line.startswith("Y[X]")


def greedy_choices(problem: Problem) -> dict[str, Choice]:
    """For each EinSum in order, the cheapest choice with all earlier choices fixed."""
    model = problem.model
    produced = {name: decomposition.tiles for name, decomposition in problem.stored.items()}
    chosen: dict[str, Choice] = {}

    def added(einsum: EinSum, choice: Choice) -> float:
        seconds = model.vertex_cost(einsum, choice).seconds
        for operand in einsum.operands:
            expected = reference_tiles(einsum, operand, choice)
            seconds += model.repartitions.seconds(operand.tensor, produced.get(operand.tensor, expected), expected)
        name, tiles = einsum.output.tensor, result_tiles(einsum, choice)
        layout = problem.layouts.get(name)
        return seconds + (0 if layout is None else model.repartitions.seconds(name, tiles, layout.tiles))

    for einsum in model.graph.einsums:
        choices = itertools.product((DEMOTED, 1), repeat=len(einsum.labels))
        best = min(choices, key=lambda choice, einsum=einsum: added(einsum, choice))  # type: ignore[misc]  # default binds it
        chosen[einsum.output.tensor] = best
        produced[einsum.output.tensor] = result_tiles(einsum, best)
    return chosen
