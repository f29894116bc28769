"""The chart: as helm renders it, and as an API server takes it."""
