"""The ledger: the GPUs that pods of each tenant use or have reserved."""
