"""Benchmarks: one runnable module per table; each compares our figures with those of peers from the same run."""
