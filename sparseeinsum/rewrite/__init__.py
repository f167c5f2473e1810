"""Rewriting: turns an EinGraph into an equal one of EinSums of one or two operands, in a cheap order."""
