"""Rewriting: decides whether two programs compute the same, by normal forms of sums of products (SPORES)."""
