"""Semantics: decides what an exact result of each EinSum needs, for the fills and the values of the inputs."""
