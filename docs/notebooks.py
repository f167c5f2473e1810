"""Makes notebooks of pages: every block of Python is a cell, and what stands between blocks is text."""

import posixpath
import re
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$\n?", flags=re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?:)([\w./]+)\.md(#[\w-]+)?\)")
_SITE = "https://github.com/sparseeinsum/sparseeinsum/tree/main/docs/"


def notebook_of(page: Path) -> nbformat.NotebookNode:
    """The notebook of a page, with cells that have not run.

    Output that the page shows is left out, because the cells will show theirs. Links to other pages lead to the site.
    """
    folder = page.parent.relative_to(Path(__file__).parent).as_posix()

    def on_the_site(link: re.Match[str]) -> str:
        return f"]({_SITE}{posixpath.normpath(posixpath.join(folder, link[1]))}.md{link[2] or ''})"

    text = _LINK.sub(on_the_site, page.read_text(encoding="utf-8"))
    cells, end = [], 0
    for block in _BLOCK.finditer(text):
        cells.append(new_markdown_cell(text[end : block.start()].strip()))
        if block[1] == "python":
            cells.append(new_code_cell(block[2].strip()))
        elif block[1] != "output":
            cells.append(new_markdown_cell(block[0].strip()))
        end = block.end()
    cells.append(new_markdown_cell(text[end:].strip()))
    notebook = new_notebook(cells=[cell for cell in cells if cell.source])
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"  # by default it is random
    return notebook
