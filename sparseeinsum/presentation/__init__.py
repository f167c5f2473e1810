"""Presentation: suggestions for misspelt names, short tracebacks, HTML tables. Every room may import it."""
