"""Pictures for the README, drawn by scripts so that they can be changed by a diff."""
