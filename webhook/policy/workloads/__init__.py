"""Workloads: the table of kinds, where their pod templates lie, how many pods come of them."""
