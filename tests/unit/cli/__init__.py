"""Unit tests of webhook.cli."""
