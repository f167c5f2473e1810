"""EinDecomp: what cuts among workers minimise."""

SECONDS = "seconds"  # of all workers together, with what they send and while they wait; needs the tensors
FLOATS = "floats"  # that workers send each other
BOUND = "bound"  # floats, if no worker has what its calls read, as in the paper; only without tensors

OF_PARTITIONS = (FLOATS, BOUND)
OF_PLANS = (SECONDS, FLOATS)
