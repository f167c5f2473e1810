"""Kernels: how DuckDB gets the functions, in this process or from a file."""
