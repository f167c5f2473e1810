"""Kernels: what numba compiles: the arithmetic, and what calls it for every host."""
