"""Loading: arrays, frames, files and tables of users' in, tensors in tables of the database out."""
