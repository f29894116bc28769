"""Kubernetes objects as decisions read them: views of their fields, quantities, field paths, names of kinds."""
