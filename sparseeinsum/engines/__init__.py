"""Engines: statements in, rows out: connections, transactions, limits and errors of each database."""
