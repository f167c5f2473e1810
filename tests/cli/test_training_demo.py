"""The command demo --train: the loss falls, and the page shows it."""

import re
from pathlib import Path

import pytest

from sparseeinsum.cli import main
from sparseeinsum.cli.charts import column_chart


def test_the_loss_falls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "curves.html"
    assert main(["demo", "--train", "--steps", "15", "--html", str(page)]) == 0
    printed = capsys.readouterr().out
    columns = [line.partition("|")[2] for line in printed.splitlines() if "|" in line]
    assert len(columns) == 8
    assert [len(line) for line in columns] == sorted(len(line) for line in columns)  # the loss never rises
    assert len(columns[-1]) == 15
    match = re.search(r"15 steps in .* from (\S+) to (\S+)\n", printed)
    assert match is not None
    before, after = map(float, match.groups())
    assert after < 0.95 * before
    shares = re.search(r"of the 900 other nodes, (\S+)% had the right class before, (\S+)% after", printed)
    assert shares is not None
    assert float(shares[1]) < 40 < 70 < float(shares[2])
    curves = re.findall(r'points="([^"]*)"', page.read_text(encoding="utf-8"))
    assert [len(points.split()) for points in curves] == [15, 15]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--html", "curves.html"], "--html is for the curves of --train"),
        (["--train", "--data", "graph.npz"], "leave out --data"),
        (["--train", "--steps", "0"], "--steps 0 trains nothing"),
    ],
)
def test_options_that_do_not_fit(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_columns_are_drawn_in_eighths() -> None:
    assert list(column_chart([2, 1, 0.125, 0], height=2)) == ["2 │█", "  │██▁", "0 └────"]
    assert list(column_chart([0, 0], height=1, is_plain=True)) == ["1 |", "0 +--"]
    assert list(column_chart(range(101), height=1, width=3)) == ["100 │ ▄█", "  0 └───"]  # 0, 50 and 100
