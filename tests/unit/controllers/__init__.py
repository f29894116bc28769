"""Unit tests of webhook.controllers."""
