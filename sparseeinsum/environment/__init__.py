"""Environment: the files of the package, settings, optional packages and logs. Every room may import it."""
