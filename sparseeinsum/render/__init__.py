"""Render: operators over tensor relations in, SQL statements of a dialect out."""
