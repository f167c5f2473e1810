"""Kernels: makes and installs PostgreSQL's extension: its library, control file and scripts."""
