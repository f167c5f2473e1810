"""Kernels: writes the array functions in SQL, for PostgreSQL servers where no library can be installed."""
