"""Classifies workloads by evidence: their kinds, their labels, their commands and images, and their names."""
