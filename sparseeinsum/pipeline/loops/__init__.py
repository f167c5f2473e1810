"""Loops: steps of a program that replace its state, until a condition holds."""
