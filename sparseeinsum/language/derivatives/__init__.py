"""Derivatives of programs, which are programs again: rules, local derivatives, reverse mode and forward mode."""
