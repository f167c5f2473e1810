"""Rewriting: finds cheaper sums of products that equal given ones, by equality saturation (SPORES)."""
