"""Saved plans: a plan in, text out; that text and another database in, the same plan for its data out."""
