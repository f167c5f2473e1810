"""Notebooks that the site offers run from the first cell to the last, and show what their pages show."""

import re
import runpy
from pathlib import Path

import pytest
from nbclient import NotebookClient
from pages import blocks_of

from sparseeinsum.environment import assets

DOCS = assets.ROOT / "docs"
_SITE = "https://github.com/sparseeinsum/sparseeinsum/tree/main/docs/"


@pytest.mark.filterwarnings("default")  # of the kernel's packages
@pytest.mark.parametrize("page", ["index.md", "tutorials/python.md", "recipes/learning.md"])
def test_cells_show_what_the_page_shows(page: str, tmp_path: Path) -> None:
    notebook = runpy.run_path(str(DOCS / "notebooks.py"))["notebook_of"](DOCS / page)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    links = re.findall(r"\]\((\S+?\.md)", "".join(cell.source for cell in notebook.cells))
    assert links
    assert all((DOCS / link.removeprefix(_SITE)).is_file() for link in links if link.startswith(_SITE))
    assert all(link.startswith("https:") for link in links)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) == sum(block.language == "python" for block in blocks_of(DOCS / page))
    printed = ["".join(output.get("text", "") for output in cell.outputs).rstrip() for cell in code]
    shown = [block.text.rstrip() for block in blocks_of(DOCS / page) if block.language == "output"]
    assert shown
    assert [text for text in printed if text in shown] == shown
