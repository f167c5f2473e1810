"""Rewriting: programs in, whether they compute the same out: normal forms of sums of products (SPORES)."""
