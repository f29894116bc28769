"""How a command finds its cluster, and reads it as far as the user may."""
