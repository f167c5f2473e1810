"""Kernels: what DuckDB calls, compiled."""
