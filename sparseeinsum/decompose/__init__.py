"""Decompose: an EinGraph and its statistics in, for every EinSum the labels that the database handles out."""
