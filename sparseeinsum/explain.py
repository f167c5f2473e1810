"""What a plan says of itself, for reading in a terminal."""
