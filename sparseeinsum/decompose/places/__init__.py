"""Decompose, places: where tuples and blocks of tensors lie, on which machines, and what machines send each other."""
