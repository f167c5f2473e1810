"""Attacks on a database with random programs, calls, names and kills; tests/fuzz.py runs them."""
