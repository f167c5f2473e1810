"""Language: parses program text to syntax trees with positions."""

from collections.abc import Iterator

from lark import Tree

from sparseeinsum.errors import ParseError
from sparseeinsum.language.affine_indices import AffineIndex
from sparseeinsum.language.expression_building import ExpressionBuilder
from sparseeinsum.language.expression_checks import with_limited_depth
from sparseeinsum.language.index_syntax import affine_index
from sparseeinsum.language.parameters import Parameters
from sparseeinsum.language.parse_trees import ParseErrorReport, expression_tree, parse_tree
from sparseeinsum.language.statement_building import FileAccess, StatementBuilder
from sparseeinsum.language.syntax import (
    ExpressionTree,
    SourceText,
    Statement,
)


def parse(
    source: SourceText, parameters: Parameters, files: FileAccess, report: ParseErrorReport
) -> Iterator[Statement]:
    """Parse program text; the syntax trees have the values of parameters in place of their names.

    Args:
        source: The text.
        parameters: Receives the parameters that are declared.
        files: Finds the files that the text names.
        report: Called with every error; if it does not raise, the statements without errors are parsed.

    Raises:
        ParseError: The text has a syntax error; the message has the line, the column and what was expected there.
    """
    builder = StatementBuilder(source, parameters, files)
    for tree in parse_tree(source, report).children:
        try:
            assert isinstance(tree, Tree)
            yield from builder.statements(tree)
        except ParseError as error:
            report(error)


def parse_join(text: str, operands: tuple[str, ...]) -> ExpressionTree:
    """Parse a scalar expression; `operands` are the names of its operands, which have no labels.

    Raises:
        ParseError: The text has a syntax error; the message has the line, the column and what was expected there.
    """
    source = SourceText(text)
    expression = ExpressionBuilder(source, operands).expression(expression_tree(source))
    return with_limited_depth(expression, source)


def parse_index(text: str) -> AffineIndex:
    """Parse an index such as 2*i + 1.

    Raises:
        ParseError: The text is no index.
    """
    source = SourceText(text)
    return affine_index(ExpressionBuilder(source).expression(expression_tree(source)), source)
