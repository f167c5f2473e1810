"""Render: SQL without the functions of this package, for engines that this package does not run on."""
