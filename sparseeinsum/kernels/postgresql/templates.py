"""Kernels: fills the templates of sql/postgresql."""

from string import Template

from sqlglot import exp

from sparseeinsum.environment import assets


def fill(template: str, /, **values: object) -> str:
    """Return the text of a file of sql/postgresql with its placeholders, such as $name, replaced by values."""
    return Template(assets.read(f"sql/postgresql/{template}")).substitute(values)


def literal(text: str) -> str:
    """Quote a text as a literal in SQL."""
    return exp.Literal.string(text).sql("postgres")
