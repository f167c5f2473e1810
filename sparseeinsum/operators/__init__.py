"""Operators: scalar functions, aggregates and scans, each defined by one record from which everything else follows."""
