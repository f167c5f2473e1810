"""Operators: what scalar functions, aggregates and scans are, each in one record from which all else follows."""
