"""The command line: parsers of commands, which import what runs a command when it runs."""
