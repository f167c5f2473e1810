"""Sparse work beside libraries and databases that compute in memory."""
