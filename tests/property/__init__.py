"""Properties of every input, not only of those that somebody thought of."""
