"""Kernels: the catalogue of functions; compiles, caches and registers the kernels of udfs/ with a host."""
