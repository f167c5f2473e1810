"""Engines: DuckDB."""
