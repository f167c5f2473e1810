"""Plans: what was decided for a program, as data: explained, drawn, saved, checked against other values."""
