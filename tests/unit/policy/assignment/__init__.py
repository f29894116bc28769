"""Unit tests of webhook.policy.assignment: which tier a pod gets."""
