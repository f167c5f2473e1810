"""Engines: PostgreSQL, over a client's connection or inside the server."""
