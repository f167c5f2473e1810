"""Results: a plan in; its statements run, and what they return as arrays, frames, tables, files or streams out."""
