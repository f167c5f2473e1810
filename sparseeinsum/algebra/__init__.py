"""Algebra: plans as trees of operators over tensor relations."""
