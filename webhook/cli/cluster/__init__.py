"""The access of commands to a cluster: finds the cluster, and reads as much of it as the user may."""
