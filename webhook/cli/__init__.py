"""The commands: a file for each, or a folder whose first file has its options."""
