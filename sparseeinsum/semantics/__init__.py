"""Semantics: an EinGraph and what is known of its inputs' values in, what an exact result needs out."""
