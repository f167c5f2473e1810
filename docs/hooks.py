"""Generates parts of the site: the drawing of a plan, the table of functions, and notebooks of pages."""

from pathlib import Path

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from notebooks import notebook_of

import sparseeinsum as se
from sparseeinsum.api.examples import citation_graph, gcn_inputs, load
from sparseeinsum.api.graphs import GCN
from sparseeinsum.kernels.array_functions import array_functions

_NOTEBOOKS = {
    "index.md": "tour.ipynb",
    "tutorials/python.md": "tutorials/python.ipynb",
    "recipes/learning.md": "recipes/learning.ipynb",
}
_TABLE = "<!-- table of functions -->"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the drawing of a plan, and notebooks."""
    with load(se.connect(), gcn_inputs(citation_graph())) as db:
        page = db.plan(GCN).to_html()
    files.append(File.generated(config, "plans/gcn.html", content=page))
    for page_name, notebook_name in _NOTEBOOKS.items():
        notebook = nbformat.writes(notebook_of(Path(config.docs_dir) / page_name))
        files.append(File.generated(config, notebook_name, content=notebook))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Insert the table of functions at its mark, and a link to the notebook of a page below its title."""
    if notebook := _NOTEBOOKS.get(page.file.src_uri):
        title, text = markdown.split("\n", 1)
        return f"{title}\n\n[This page as a notebook]({Path(notebook).name})\n{text}"
    return markdown.replace(_TABLE, _table_of_functions()) if _TABLE in markdown else markdown


def _table_of_functions() -> str:
    parts = []
    for title, is_aggregate in (("Functions", False), ("Aggregates", True)):
        parts += [f"## {title}", "", "| function | what it computes | example |", "|---|---|---|"]
        for function in array_functions():
            if function.is_aggregate == is_aggregate:
                arguments = ", ".join(argument.name for argument in function.arguments)
                cells = (f"`{function.name}({arguments})`", function.description, f"`{function.example}`")
                parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        parts.append("")
    return "\n".join(parts)
