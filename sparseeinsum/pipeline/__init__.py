"""Pipeline: a program and a database in, plans and results out: read, planned, run, planned anew halfway."""
