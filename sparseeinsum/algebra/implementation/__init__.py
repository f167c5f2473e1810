"""Algebra, implementation: the implementation algebra (IA): what sites send to each other, and what each computes.

Source: Yuan et al., "Tensor Relational Algebra for Distributed Machine Learning System Design", VLDB 2021, sections 4
and 5.
"""
