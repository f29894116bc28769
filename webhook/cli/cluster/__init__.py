"""How a command finds its cluster, and reads what it has to know: as far as the person may."""
