"""Decompose: where tensors lie on a cluster of database servers, how EinSums are computed there, at which cost."""
