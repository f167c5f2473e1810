"""Kernels: the compiled callbacks of DuckDB."""
