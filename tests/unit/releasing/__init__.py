"""The version in every place that says it, and the changelog of a release."""
