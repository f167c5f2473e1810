"""Algebra: where the tables of a plan lie on a cluster of database servers, and what goes between these."""
