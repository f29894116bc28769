"""Asks trainings to save: before an eviction, before their node ends, or when too much work is unsaved."""
