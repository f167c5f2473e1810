"""Algebra, relational: the tensor relational algebra (TRA): expressions over relations of keys and arrays.

Source: Yuan et al., "Tensor Relational Algebra for Distributed Machine Learning System Design", VLDB 2021, section 3.
"""
