"""Language: parses program text to trees of lark, whose nodes are the rules of grammar.lark."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, lru_cache
from typing import TypeVar

from lark import Lark, Token, Tree, UnexpectedInput
from lark.tree import Meta

from sparseeinsum.environment.settings import cache_folder
from sparseeinsum.errors import ParseError
from sparseeinsum.language.parse_errors import ALWAYS_ALLOWED, blank_out_statement, explain_syntax_error
from sparseeinsum.language.syntax import SourceText
from sparseeinsum.version import __version__

Method = TypeVar("Method", bound=Callable[..., object])

ParseErrorReport = Callable[[ParseError], None]


def raise_error(error: ParseError) -> None:
    """A `ParseErrorReport` that stops at the first error."""
    raise error


def parse_tree(source: SourceText, report: ParseErrorReport) -> Tree[Token]:
    """The parse tree of a text; statements with syntax errors are reported and left out."""
    text = source.text
    while True:
        try:
            return _tree(text)
        except UnexpectedInput as unexpected:
            error = explain_syntax_error(unexpected, source)
            report(error)
            remaining = blank_out_statement(text, error.line)
            if remaining == text:
                return Tree("start", [])
            text = remaining


@lru_cache(maxsize=32)  # loops run the same text many times
def _tree(text: str) -> Tree[Token]:
    """The parse tree of a program, which nobody changes."""
    return _parser().parse(text, start="start")


def forget_trees() -> None:
    """Forget the trees of all texts, so that the next ones are parsed."""
    _tree.cache_clear()


def expression_tree(source: SourceText) -> Tree[Token]:
    """The tree of a text that is an expression.

    Raises:
        ParseError: The text has a syntax error; the message has the line, the column and what was expected there.
    """
    try:
        return _parser().parse(source.text, start="expression")
    except UnexpectedInput as error:
        raise explain_syntax_error(error, source) from None


@cache
def _parser() -> Lark:
    """The parser; lark keeps its tables in a file, with a digest of the grammar, as to make them takes 0.2 seconds."""
    folder = cache_folder()
    with suppress(OSError):  # lark goes on without a file, too
        folder.mkdir(parents=True, exist_ok=True)
    return Lark.open(
        "grammar.lark",
        rel_to=__file__,
        cache=str(folder / f"grammar-{__version__}"),
        parser="lalr",
        start=["start", "expression"],
        propagate_positions=True,
        maybe_placeholders=True,
        postlex=_JoinLines(),
    )


def with_meta(method: Method) -> Method:
    """Let a method of a transformer get the place of a node, and then its children.

    In place of lark's `v_args`, which makes a wrapper whenever a method is looked up, for every node of a tree.
    """
    vars(method)["visit_wrapper"] = _called_with_meta
    return method


def _called_with_meta(method: Callable[..., object], _: str, children: list[object], meta: Meta) -> object:
    return method(meta, children)


class _JoinLines:
    """Drops line ends inside brackets and parentheses, so that an expression can have several lines."""

    always_accept = (ALWAYS_ALLOWED,)

    def process(self, tokens: Iterator[Token]) -> Iterator[Token]:
        """The tokens, without the line ends inside brackets and parentheses."""
        depth = 0
        for token in tokens:
            depth += {"LPAR": 1, "LSQB": 1, "RPAR": -1, "RSQB": -1}.get(token.type, 0)
            if token.type != "_NEWLINE" or depth <= 0:
                yield token
