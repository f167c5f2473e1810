"""The plugin of dbt-duckdb: its databases have the functions of this package.

In profiles.yml, the target has

    plugins:
      - module: sparseeinsum.dbt_plugin

dbt-duckdb imports this module, and with it this package, before it opens the database.
"""

from dbt.adapters.duckdb.plugins import BasePlugin
from duckdb import DuckDBPyConnection

import sparseeinsum as se


class Plugin(BasePlugin):
    """Sees to it that the database that dbt-duckdb opened has the functions."""

    def configure_connection(self, conn: DuckDBPyConnection) -> None:
        """Refuse a database that was opened before this package was imported.

        Raises:
            EngineError: It lacks the functions.
        """
        with se.connect(conn):
            pass
