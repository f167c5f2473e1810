"""Statistics: tables in, numbers of tuples and of distinct indices out; estimates for results."""
