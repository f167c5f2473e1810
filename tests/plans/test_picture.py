"""A plan's page is one self-contained file whose drawing has no overlaps."""

import itertools
import random
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse as sp

import sparseeinsum as se
from sparseeinsum.api.examples import (
    MULTI_HEAD_ATTENTION,
    attention_inputs,
    attention_program,
    citation_graph,
    gcn_inputs,
    load,
    multi_head_attention_inputs,
)
from sparseeinsum.api.graphs import GCN
from sparseeinsum.plans.picture.cards import notation_lines
from sparseeinsum.plans.picture.graph_layout import DrawnNode, Edge, GraphLayout, place

SVG = "{http://www.w3.org/2000/svg}"
# The width of a letter of DejaVu Sans Mono, the widest of the fonts, as a share of its size
ADVANCE = 0.602
SIZES = {"notation": 13, "small": 11}
MIXED = """
T[i, m] = sum(A[i, j] * B[j, k] * H[k, m])
D[i, j] = sum((A[i, k] - B[k, j]) ^ 2)
Y[i]    = sum(relu(T[i, m]) * index(m))
Z[i]    = sum(D[i, j]) / bound(j)
F[i, m] = where(T[i, m] > 0 and A[i, i] == 0, sigmoid(T[i, m]) * 3.5, tanh(T[i, m] / (abs(Y[i]) + 1)))
"""


@pytest.fixture(scope="module")
def plans() -> dict[str, se.Plan]:
    graph = citation_graph(nodes=60, edges=200, features=30, entries=400)
    rng = np.random.default_rng(0)
    mixed = {name: sp.random_array((200, 200), density=0.02, rng=rng).tocsr() for name in "AB"}
    return {
        "gcn": load(se.connect(), gcn_inputs(graph)).plan(GCN),
        "attention": load(se.connect(), attention_inputs(graph, 16)).plan(attention_program(16)),
        "multi-head attention": load(se.connect(), multi_head_attention_inputs(16, 2, 8)).plan(MULTI_HEAD_ATTENTION),
        "mixed": load(se.connect(), {**mixed, "H": rng.normal(size=(200, 16))}).plan(MIXED, outputs=["T"]),
        "dense": load(se.connect(), gcn_inputs(graph)).plan(GCN, optimizer="dense", layout="any"),
    }


NAMES = ("gcn", "attention", "multi-head attention", "mixed", "dense")


class Tags(HTMLParser):
    """Reads a page and checks that every element is closed in the right place."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def drawing(page: str) -> ElementTree.Element:
    (svg,) = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    return ElementTree.fromstring(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


def texts(card: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()) for text in card.iter(f"{SVG}text")]


@pytest.mark.parametrize("name", NAMES)
def test_pages_are_well_formed_and_self_contained(plans: dict[str, se.Plan], name: str) -> None:
    page = plans[name].to_html()
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert tags.open == []
    names = {tag for tag, _ in tags.seen}
    assert not names & {"script", "link", "img", "iframe", "object"}
    assert not {key for _, attributes in tags.seen for key in attributes} & {"src", "href"}
    assert "@import" not in page
    assert not re.search(r"https?:|url\((?!#)", page)
    assert "prefers-color-scheme: dark" in page
    text = "".join(tags.text)
    for line in (*plans[name].notation(), *str(plans[name].data.program).splitlines()):
        assert line in text
    assert plans[name].sql("staged") in text


@pytest.mark.parametrize("name", NAMES)
def test_drawings_have_every_einsum_and_repartition(plans: dict[str, se.Plan], name: str) -> None:
    plan = plans[name]
    cards: dict[str, list[str]] = {kind: [] for kind in ("input", "einsum", "part", "repartition", "output")}
    for card in drawing(plan.to_html()).iter(f"{SVG}g"):
        cards[card.attrib["class"].split()[1]].append(" ".join(texts(card)))
    computed = " ".join((*cards["einsum"], *cards["part"]))
    notation = re.sub(r"\s+", "", computed.replace("\N{NO-BREAK SPACE}", ""))
    assert all(line.replace(" ", "") in notation for line in plan.notation())
    parts = plan.data.rewriting.all_parts
    assert len(cards["part"]) == len(parts)
    assert len(cards["input"]) == len(plan.data.inputs)
    assert [card.split()[1] for card in cards["output"]] == list(plan.outputs)
    produced = dict(plan.data.decomposed.inputs)
    changed = 0
    for step in plan.data.decomposed.steps:
        changed += sum(
            produced[operand.tensor] != step.operand(index) for index, operand in enumerate(step.einsum.operands)
        )
        produced[step.einsum.output.tensor] = step.result
    assert len(cards["repartition"]) == changed


@pytest.mark.parametrize("name", NAMES)
def test_text_stays_inside_its_card(plans: dict[str, se.Plan], name: str) -> None:
    for card in drawing(plans[name].to_html(analyze=True)).iter(f"{SVG}g"):
        face = next(card.iter(f"{SVG}rect"))
        baselines = []
        for text in card.iter(f"{SVG}text"):
            length = len("".join(text.itertext())) * SIZES[text.attrib["class"]] * ADVANCE
            assert float(text.attrib["x"]) + length < float(face.attrib["width"])
            baselines.append((float(text.attrib["y"]), SIZES[text.attrib["class"]]))
        assert all(below - above >= size for (above, _), (below, size) in itertools.pairwise(baselines))
        assert baselines[-1][0] < float(face.attrib["height"])


def test_names_are_escaped(db: se.Database) -> None:
    db.tensor("A", np.eye(2))
    page = db.plan("Y[i] = sum(where(A[i, j] < 3 and A[i, j] > 1, 1, 0))").to_html()
    assert "&lt; 3 and A" in page
    assert "&gt; 1" in page
    assert drawing(page) is not None


def test_pages_are_written_to_files(plans: dict[str, se.Plan], tmp_path: Path) -> None:
    page = plans["gcn"].to_html(tmp_path / "plan.html")
    assert (tmp_path / "plan.html").read_text(encoding="utf-8") == page


def test_plans_considered_are_compared(plans: dict[str, se.Plan]) -> None:
    plan = plans["gcn"]
    page = plan.to_html(top=3)
    table = re.findall(r"<table>(.*?)</table>", page[page.index("Plans that were considered") :], flags=re.DOTALL)[0]
    assert table.count("<tr") == 1 + 3
    assert table.count('class="chosen"') == 1
    assert page.count("<details>") == len(plan.notation()) + 2


def test_labels_of_promoted_axes_stand_out() -> None:
    (line,) = notation_lines("K[I, k] = sum(A[I, J] * K[J, k])", frozenset("ij"))
    assert [text for text, style in line.runs if style == "key"] == ["I", "I", "J", "J"]
    lines = notation_lines("Y[i] = " + " + ".join(f"X{number}[i, j]" for number in range(9)), frozenset(), 30)
    assert len(lines) > 1
    assert all(line.length <= 30 for line in lines)
    assert all(text.count("[") == text.count("]") for text in ("".join(run for run, _ in line.runs) for line in lines))


def random_graph(seed: int) -> tuple[list[DrawnNode], list[Edge]]:
    rng = random.Random(seed)
    count = rng.randint(1, 25)
    nodes = [
        DrawnNode(f"n{number}", rng.randint(0, 8), rng.uniform(60, 350), rng.uniform(30, 120))
        for number in range(count)
    ]
    pairs = [(upper, lower) for upper in nodes for lower in nodes if upper.layer < lower.layer]
    chosen = rng.sample(pairs, min(len(pairs), rng.randint(0, 30)))
    return nodes, [Edge(upper.name, lower.name, rng.choice([1.0, 8.0])) for upper, lower in chosen]


@pytest.mark.parametrize("seed", range(60))
def test_cards_do_not_overlap(seed: int) -> None:
    nodes, edges = random_graph(seed)
    placement = place(nodes, edges)
    boxes = list(placement.boxes.values())
    for first, second in itertools.combinations(boxes, 2):
        is_beside = first.x + first.width < second.x or second.x + second.width < first.x
        above = first.y + first.height < second.y or second.y + second.height < first.y
        assert is_beside or above
    for box in boxes:
        assert box.x >= -1e-6
        assert box.x + box.width <= placement.width + 1e-6
        assert box.y + box.height <= placement.height + 1e-6
    check_routes(placement, edges)


def check_routes(placement: GraphLayout, edges: list[Edge]) -> None:
    """Assert that edges run downwards between borders, straight parts beside boxes, curves between layers."""
    for edge, route in zip(edges, placement.routes, strict=True):
        source, target = placement.boxes[edge.source], placement.boxes[edge.target]
        assert route[0] == pytest.approx((source.x + source.width / 2, source.y + source.height))
        assert route[-1][1] == pytest.approx(target.y)
        assert target.x < route[-1][0] < target.x + target.width
        assert all(above[1] <= below[1] + 1e-6 for above, below in itertools.pairwise(route))
        for index, ((x, top), (end, bottom)) in enumerate(itertools.pairwise(route)):
            for box in placement.boxes.values():
                is_beside = index % 2 == 0 and x == end and not box.x < x < box.x + box.width
                assert is_beside or box.y >= bottom - 1e-6 or box.y + box.height <= top + 1e-6


def test_long_edges_run_straight() -> None:
    """Beside boxes of equal width an edge bends at most twice."""
    nodes = [DrawnNode(f"n{layer}", layer, 200.0, 50.0) for layer in range(8)]
    chain = [Edge(f"n{layer}", f"n{layer + 1}", 8.0) for layer in range(7)]
    placement = place(nodes, [*chain, Edge("n0", "n7")])
    *_, route = placement.routes
    assert len({round(x, 3) for x, _ in route[2:-2]}) == 1
    lefts = [box.x for box in placement.boxes.values()]
    assert max(lefts) - min(lefts) < 1


def test_crossings_are_removed() -> None:
    nodes = [DrawnNode(name, layer, 50.0, 20.0) for layer, names in enumerate(("abc", "xyz")) for name in names]
    placement = place(nodes, [Edge("a", "z"), Edge("b", "y"), Edge("c", "x")])
    order = [sorted(names, key=lambda name: placement.boxes[name].x) for names in ("abc", "xyz")]
    assert [("a", "z"), ("b", "y"), ("c", "x")] in (
        list(zip(*order, strict=True)),
        list(zip(*(names[::-1] for names in order), strict=True)),
    )


def test_layout_of_an_empty_graph() -> None:
    assert place([], []) == GraphLayout({}, (), 0.0, 0.0)
