"""Engines: statements in, results out: connections, loading, the catalogue, transactions and errors."""
