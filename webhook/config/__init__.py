"""The policy file and the settings, read with errors that name the field."""
