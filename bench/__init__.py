"""Benchmarks: one runnable module for every table, our figures beside those of peers measured in the same run."""
