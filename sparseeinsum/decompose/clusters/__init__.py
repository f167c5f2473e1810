"""Decompose: on a cluster of database servers, where tensors are, how EinSums are computed, and what both cost."""
