"""Kernels: registers the array functions with DuckDB, in this process or from an extension file."""
