"""Writes the generated pages, each from one source of truth."""
