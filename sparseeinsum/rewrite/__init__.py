"""Rewriting: an EinGraph in, one that computes the same by EinSums of one or two operands out, in a good order."""
