"""Dbt: the tests of rows that YAML declares: those of the package sparseeinsum, or of dbt itself."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Test = str | Mapping[str, Any]


class RowTests(Protocol):
    """Writes tests of the rows of models and sources as YAML."""

    def of_table(self, keys: Sequence[str]) -> list[Test]:
        """The tests of a table with these key columns."""

    def key_column(self, name: str, bound: int | None, is_only_key: bool) -> dict[str, Any]:
        """The YAML of a key column.

        Args:
            name: The name of the column.
            bound: The number of possible keys; None for natural keys, which have no bound.
            is_only_key: Whether it is the only key column of the table.
        """

    def column(self, name: str, *tests: Test) -> dict[str, Any]:
        """The YAML of a column with some tests."""


@dataclass(frozen=True, slots=True)
class PackageTests:
    """The tests of a project with the package sparseeinsum, whose macros know keys of several columns, and bounds."""

    def of_table(self, keys: Sequence[str]) -> list[Test]:
        """The test that no two rows have the same keys."""
        return [{"sparseeinsum.keys_are_unique": {"arguments": {"keys": list(keys)}}}]

    def key_column(self, name: str, bound: int | None, is_only_key: bool) -> dict[str, Any]:
        """The YAML of a key column, whose keys are not NULL and below the bound."""
        if bound is None:
            return self.column(name, "not_null")
        return self.column(name, "not_null", {"sparseeinsum.within_bound": {"arguments": {"bound": bound}}})

    def column(self, name: str, *tests: Test) -> dict[str, Any]:
        """The YAML of a column, which is quoted where that is necessary."""
        is_quoted = re.fullmatch(r"[a-z_][a-z0-9_]*", name) is None
        return {"name": name, **({"quote": True} if is_quoted else {}), "data_tests": list(tests)}


@dataclass(frozen=True, slots=True)
class GenericTests:
    """Dbt's own generic tests, which every adapter has.

    Attributes:
        quotes_names: Whether models quote the names of columns.
    """

    quotes_names: bool

    def of_table(self, keys: Sequence[str]) -> list[Test]:
        """No test: dbt has none of several columns."""
        return []

    def key_column(self, name: str, bound: int | None, is_only_key: bool) -> dict[str, Any]:
        """The YAML of a key column, whose keys are not NULL, and unique if they are all of the key."""
        return self.column(name, "not_null", *(["unique"] if is_only_key else []))

    def column(self, name: str, *tests: Test) -> dict[str, Any]:
        """The YAML of a column, which is quoted as in models."""
        return {"name": name, **({"quote": True} if self.quotes_names else {}), "data_tests": list(tests)}
