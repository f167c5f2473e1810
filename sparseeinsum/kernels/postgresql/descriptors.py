"""Kernels: what PostgreSQL's descriptors hold beyond descriptors.py."""

from sparseeinsum.kernels import descriptors as d

DECLARED = d.DESCRIPTOR_WORDS  # OID of the type of each argument, or of the elements of its array, in SQL
WANTED = DECLARED + d.MAX_ARGUMENTS  # the same, as the kernel computes with it
RESULT_TYPE = WANTED + d.MAX_ARGUMENTS  # of the result or its elements
SQLSTATES = RESULT_TYPE + 1  # address of their codes, by the negated code of a message
DESCRIPTOR_WORDS = SQLSTATES + 1

BYTEA, INT8, INT4, TEXT, FLOAT4, FLOAT8, NUMERIC = 17, 20, 23, 25, 700, 701, 1700  # OIDs of types

LARGEST_RESULT = 0x3FFFFFFF - 256  # bytes of elements; PostgreSQL allocates no more than 2^30 - 1, headers and all
