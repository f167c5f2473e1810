"""Rewriting: sums of products in, cheaper equal ones out, by equality saturation (SPORES)."""
