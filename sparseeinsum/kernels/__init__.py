"""Kernels: lists the array functions, and compiles, caches and registers the code that computes them."""
