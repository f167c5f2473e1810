"""Kernels: how PostgreSQL gets the functions: library, scripts and their installation."""
