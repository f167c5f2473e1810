"""Kernels: the vocabulary without a library, for PostgreSQL servers where none can be installed."""
