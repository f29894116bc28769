"""What holds for every input, not only for those that somebody thought of."""
