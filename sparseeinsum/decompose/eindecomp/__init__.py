"""Decompose for several workers: EinSums in, a partition vector for each and the floats transferred out."""
