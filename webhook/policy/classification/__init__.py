"""Classifies workloads by evidence: its kind, its labels, and what it runs and is called."""
