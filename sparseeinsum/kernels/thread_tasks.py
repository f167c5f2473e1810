"""Kernels: defines the layout of a task: a call of a function of a kernel, on a thread of its own."""

# The words of a task.
FUNCTION = 0  # the address of the function, which takes six words
ARGUMENTS = 1
RESULT = 7  # what it returned
THREAD = 8  # the system's name for the thread
IS_STARTED = 9  # whether it has one
TASK_WORDS = 10
ARGUMENT_COUNT = RESULT - ARGUMENTS
