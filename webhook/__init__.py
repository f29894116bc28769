"""gpu-tiers: an admission webhook that gives GPU pods a tier, a checkpoint hook and a quota."""
