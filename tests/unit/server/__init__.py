"""Unit tests of webhook.server, over real sockets."""
