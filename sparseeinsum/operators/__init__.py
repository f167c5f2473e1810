"""Operators: what scalar functions and aggregates are, each in one record from which all else follows."""
