"""Attacks on a database with random programs, calls, names and kills; `make fuzz` runs them."""
