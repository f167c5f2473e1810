"""Kernels: defines the layout of a task: a call of a kernel for one slice of a result, on a thread of its own.

See calling_convention.py for the arguments of the call.
"""

# The words of a task.
FUNCTION, ROW, OUT, SIZE, INDEX, SLICES, SCRATCH = range(7)  # the address of the kernel's function, and its arguments
RESULT = 7  # what the function returned
THREAD = 8  # the system's name for the thread
TASK_WORDS = 9
