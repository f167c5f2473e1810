"""Kernels: defines the words that PostgreSQL's descriptors have in addition to those of kernels/descriptors.py."""

from sparseeinsum.kernels import descriptors as d

DECLARED_TYPES = d.DESCRIPTOR_WORDS  # OID of the type in SQL of each argument, or of the elements of its array
KERNEL_TYPES = DECLARED_TYPES + d.MAX_ARGUMENTS  # OIDs likewise of the types that the kernel needs
RESULT_TYPE = KERNEL_TYPES + d.MAX_ARGUMENTS  # OID of the type of the result or of its elements
SQLSTATES = RESULT_TYPE + 1  # address of an array of encoded SQLSTATEs, by the negated code of a message
DESCRIPTOR_WORDS = SQLSTATES + 1

BYTEA, INT8, INT4, TEXT, FLOAT4, FLOAT8, NUMERIC = 17, 20, 23, 25, 700, 701, 1700  # OIDs of types

LARGEST_RESULT = 0x3FFFFFFF - 256  # bytes of elements; PostgreSQL allocates at most 2^30 - 1, with headers
