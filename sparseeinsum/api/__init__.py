"""API: what users call: databases, numpy's einsum, contraction paths, SQL functions, examples."""
