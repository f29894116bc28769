"""Manifests that a user names, and the webhook's answers about them."""
