"""Placement: where a tier's pods run, near each other or apart, and for how long; what a pod says itself stays."""
