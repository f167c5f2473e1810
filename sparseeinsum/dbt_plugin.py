"""A plugin for dbt-duckdb, which adds the functions of this package to its databases.

In profiles.yml, the target has

    plugins:
      - module: sparseeinsum.dbt_plugin

dbt-duckdb imports this module, and with it this package, before it opens the database.
"""

from dbt.adapters.duckdb.plugins import BasePlugin
from duckdb import DuckDBPyConnection

import sparseeinsum as se


class Plugin(BasePlugin):
    """Checks that the database that dbt-duckdb opened has the functions."""

    def configure_connection(self, conn: DuckDBPyConnection) -> None:
        """Refuse a database that was opened before this package was imported.

        Raises:
            EngineError: The database lacks the functions.
        """
        with se.connect(conn):
            pass
