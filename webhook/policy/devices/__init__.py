"""GPUs that come by dynamic resource allocation (DRA): what evicts for them, and who holds them."""
