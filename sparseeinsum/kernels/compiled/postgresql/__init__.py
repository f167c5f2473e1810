"""Kernels: what PostgreSQL calls, compiled."""
