"""Engines: DuckDB, embedded in this process."""
