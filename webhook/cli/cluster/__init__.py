"""The access of commands to a cluster: they find it, and read as much as the user may."""
