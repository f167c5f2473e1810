"""Render: the engines for which plans without arrays are written as SQL; one record each."""

from dataclasses import replace
from types import MappingProxyType

from sqlglot import Dialect as SqlglotDialect

from sparseeinsum.render.dialects import DUCKDB
from sparseeinsum.render.plain_sql.dialect_spelling import STABLE_SIGMOID, Spelling


class DataFusion(SqlglotDialect):
    """The dialect of Apache DataFusion, as far as plans need it."""


_SPELLINGS = {
    "spark": Spelling(
        engine="Spark",
        numbers="SELECT id AS range FROM RANGE(0, {count})",
        integer_quotient="u DIV v",
        functions=MappingProxyType(
            {
                name: f"CASE WHEN ABS(u) < 4.503599627370496e15 THEN CAST({name.upper()}(u) AS DOUBLE) ELSE u END"
                for name in ("floor", "ceil")  # they return BIGINT
            }
        ),
        gives_null=frozenset({"div", "log"}),  # or errors, by a setting
        error="CAST(RAISE_ERROR(CONCAT(message, COALESCE(CAST(u AS TEXT), 'NULL'))) AS DOUBLE)",
    ),
    "clickhouse": Spelling(
        engine="ClickHouse",
        numbers="SELECT CAST(number AS Int64) AS range FROM numbers({count})",
        integer_quotient="intDiv(u, v)",
        # A branch of CASE that occurs twice is computed for all rows: it must not raise an error on its own.
        error="CAST(throwIf(is_wrong, message) AS Nullable(Float64))",
        functions=MappingProxyType({"erf": "erf(u)", "sinh": "`sinh`(u)", "cosh": "`cosh`(u)"}),  # in lower case
        # Columns without a partner, and aggregates without rows, would be 0 instead of NULL.
        settings=MappingProxyType({"join_use_nulls": 1, "aggregate_functions_null_for_empty": 1}),
    ),
    "datafusion": Spelling(
        engine="DataFusion",
        numbers="SELECT value AS range FROM range(0, {count})",
        integer_quotient="u / v",
        distinguishes_zeros=True,
    ),
    "sqlite": Spelling(
        engine="SQLite",
        numbers="WITH RECURSIVE numbers AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM numbers WHERE n < {last}) "
        "SELECT n AS range FROM numbers",
        integer_quotient="CAST(u / v AS INTEGER)",
        functions=MappingProxyType({"mod": ""}),  # % rounds to integers
        gives_null=frozenset({"div", "log"}),
        error="JSON_ARRAY_LENGTH('{}', message || COALESCE(u, 'NULL'))",  # no such path: the message is in the error
        infinity="9e999",
        has_nan=False,
        has_float32=False,
    ),
    "snowflake": Spelling(
        engine="Snowflake",
        numbers="SELECT ROW_NUMBER() OVER (ORDER BY SEQ8()) - 1 AS range FROM TABLE(GENERATOR(ROWCOUNT => {count}))",
        integer_quotient="(u - u % v) / v",  # a quotient is a decimal, which rounds
        functions=MappingProxyType({"sigmoid": STABLE_SIGMOID}),
        casts_literals=True,
        has_float32=False,
        checks_integers=True,
        quotes_names=False,
    ),
    "bigquery": Spelling(
        engine="BigQuery",
        numbers="SELECT range FROM UNNEST(GENERATE_ARRAY(0, {last})) AS range",
        integer_quotient="DIV(u, v)",
        functions=MappingProxyType({"mod": "", "sigmoid": STABLE_SIGMOID}),  # it has MOD of integers and decimals
        error="ERROR(CONCAT(message, COALESCE(CAST(u AS TEXT), 'NULL')))",
        has_float32=False,
        checks_integers=True,
    ),
    "trino": Spelling(
        engine="Trino",
        numbers="SELECT range FROM UNNEST(SEQUENCE(0, {last})) AS numbers(range)",
        most_numbers=10_000,
        integer_quotient="u / v",
        infinity="'Infinity'",
        checks_integers=True,
    ),
}

OTHER_DIALECTS = {
    name: replace(
        DUCKDB,
        name=name,
        probe_hint=None,
        row_number=None,
        computes_whole=False,
        keeps_residents=False,
        largest_gathered=None,
        stores_lists=False,
        chains_arrays=False,  # numbers are no arrays
        calls_python=False,
        plain=spelling,
    )
    for name, spelling in _SPELLINGS.items()
}
