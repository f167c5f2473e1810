"""Storage: which tensors a database holds, where, and how; tables of users' as tensors; natural keys."""
