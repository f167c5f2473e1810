"""Models: weights in files, and networks of other packages as programs."""
