"""The command line: the error of a command line that asks for what does not go together."""


class UsageError(ValueError):
    """Options that contradict each other, or lack another one; the message says which to leave out or to add."""
