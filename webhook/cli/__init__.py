"""The commands: serve, review, demo, certs."""
