"""The tables of the parser are kept in a file, and made again where it is missing or damaged."""

import os
from pathlib import Path

import pytest
from lark import Lark

from sparseeinsum.language import parse_trees

TEXT = "Y[i] = sum(\n  A[i, j] *\n  X[j])\n"


def make_parser() -> Lark:
    """A parser as of a new process."""
    return parse_trees._parser.__wrapped__()


def test_a_kept_parser_parses_as_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    trees = [make_parser().parse(TEXT, start="start")]
    (file,) = (tmp_path / "sparseeinsum").iterdir()
    content = file.read_bytes()
    trees.append(make_parser().parse(TEXT, start="start"))
    assert file.read_bytes() == content
    for damaged in (content[:1000], b"", b"x" * 100, content.replace(content[:8], b"00000000", 1)):
        file.write_bytes(damaged)
        trees.append(make_parser().parse(TEXT, start="start"))
        made_again = file.read_bytes()
        assert made_again[:64] == content[:64]  # the digest
        assert len(made_again) > len(content) / 2
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    trees.append(make_parser().parse(TEXT, start="start"))
    assert all(tree == trees[0] for tree in trees)
    assert capfd.readouterr() == ("", "")
