"""Algebra: a plan in, a tree of operators over tensor relations out."""
