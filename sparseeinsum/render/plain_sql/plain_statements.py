"""Render: a statement of a plan without arrays as text in the SQL of an engine that this package does not run on."""

from sqlglot import exp, parse_one

from sparseeinsum.errors import PlanError
from sparseeinsum.render.plain_sql.dialect_spelling import Spelling, filled
from sparseeinsum.statistics.columns import IS_TRUTH

_NUMBERS = "range"  # the table function of the numbers from 0, and its column, as plans have it
DEFAULT_SCHEMAS = ("main", "public")  # of databases in which plans are made; engines have others


def plain_text(statement: exp.Expr, dialect: str, spelling: Spelling) -> str:
    """The text of a statement.

    Args:
        statement: The statement, as it is rendered for all engines.
        dialect: The dialect of sqlglot.
        spelling: How the engine spells it.

    Raises:
        PlanError: The engine has no such numbers, or not as many.
    """
    plain = statement.copy()
    for node in reversed(list(plain.walk())):  # parts before what they are parts of
        replacement = _replaced(node, dialect, spelling)
        if replacement is not node:
            node.replace(replacement)
    if spelling.settings:
        plain.set(
            "settings",
            [
                exp.EQ(this=exp.to_identifier(name), expression=exp.Literal.number(value))
                for name, value in spelling.settings.items()
            ],
        )
    return plain.sql(
        dialect, pretty=True, identify=spelling.quotes_names, normalize_functions=False, max_text_width=100
    )


def _replaced(node: exp.Expr, dialect: str, spelling: Spelling) -> exp.Expr:
    """A part of a statement as the engine spells it."""
    match node:
        case exp.CTE():
            node.set("materialized", None)
        case exp.Select():  # ClickHouse names columns of joins otherwise
            is_named = (not isinstance(column, exp.Column) or column.is_star for column in node.selects)
            columns = [
                column if named else exp.alias_(column, column.name)
                for column, named in zip(node.selects, is_named, strict=True)
            ]
            node.set("expressions", columns)
        case exp.Collate(this=exp.Expr() as part) | exp.Paren(this=exp.Column() as part):
            return part
        case exp.AnyValue(this=exp.Expr() as part):
            return exp.Max(this=part)
        case exp.Table(this=exp.Anonymous() | exp.GenerateSeries()):
            return _numbers(node, dialect, spelling)
        case exp.Table(args={"db": exp.Identifier() as schema}) if schema.name in DEFAULT_SCHEMAS:
            node.set("db", None)
            node.set("catalog", None)
        case exp.IntDiv(this=dividend, expression=divisor):
            return filled(spelling.integer_quotient, dialect, u=dividend, v=divisor)
        case exp.Cast():
            return _cast(node, spelling)
        case exp.Literal(is_string=False, this=digits) if not digits.isdigit():
            return _floating(digits, spelling)
    return node


def _floating(digits: str, spelling: Spelling) -> exp.Expr:
    """A number of floating point; without an exponent, some engines would compute with decimals."""
    literal = exp.Literal.number(digits if "e" in digits.lower() else f"{digits}e0")
    return exp.cast(literal, "double") if spelling.casts_literals else literal


def _cast(cast: exp.Cast, spelling: Spelling) -> exp.Expr:
    value, kind = cast.this, cast.to
    if kind.is_type(exp.DType.FLOAT) and not spelling.has_float32:
        kind = exp.DataType.build("DOUBLE")
        cast.set("to", kind)
    if kind.is_type(exp.DType.BOOLEAN):
        return exp.NEQ(this=value, expression=exp.Literal.number(0))
    if cast.meta.get(IS_TRUTH):
        one, zero = (exp.cast(exp.Literal.number(digit), kind) for digit in (1, 0))
        return exp.case().when(value, one).else_(zero)
    if isinstance(value, exp.Literal) and value.is_string and value.name.lstrip("-") in ("inf", "nan"):
        return _special(value.name, kind, spelling)
    return cast


def _special(name: str, kind: exp.DataType, spelling: Spelling) -> exp.Expr:
    """An infinity as the engine writes it, in the type `kind`.

    Raises:
        PlanError: It is NaN.
    """
    if name == "nan":
        raise PlanError(f"NaN is a fill or a number of the program; SQL for {spelling.engine} cannot have it")
    infinity = parse_one(spelling.infinity)
    number = exp.cast(infinity, kind) if isinstance(infinity, exp.Literal) and infinity.is_string else infinity
    return exp.Neg(this=number) if name.startswith("-") else number


def _numbers(table: exp.Table, dialect: str, spelling: Spelling) -> exp.Expr:
    """The numbers from 0, as a query under the alias of the table function.

    Raises:
        PlanError: The function generates other rows, or the engine generates fewer.
    """
    match table.this:
        case exp.Anonymous(name=name, expressions=[exp.Literal() as bound]) if name.lower() == _NUMBERS:
            pass
        case exp.GenerateSeries(args={"end": exp.Literal() as bound, "is_end_exclusive": True}):
            pass  # as sqlglot reads range(n) in the relation of a generated tensor
        case _:
            raise PlanError(f"the rows of {table.sql()} are generated; SQL for {spelling.engine} needs a table of them")
    count = int(bound.name)
    if spelling.most_numbers is not None and count > spelling.most_numbers:
        raise PlanError(
            f"the plan fills in {count:,} absent entries; {spelling.engine} generates at most "
            f"{spelling.most_numbers:,} rows. Store these entries, or choose another engine"
        )
    text = spelling.numbers.format(count=count, last=count - 1) if count else "SELECT 0 AS range WHERE 1 = 0"
    numbers: exp.Select = parse_one(text, read=dialect, into=exp.Select)
    return numbers.subquery(table.alias or _NUMBERS)
