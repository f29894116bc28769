"""Workloads: the table of kinds, the places of their pod templates, and the number of their pods."""
