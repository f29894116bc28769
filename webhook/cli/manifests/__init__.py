"""Manifests that a person names, and what the webhook would say of them."""
