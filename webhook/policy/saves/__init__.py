"""Asks trainings to save before something is taken from them."""
