"""The texts of gpu-tiers, and the one place where a value becomes a sentence."""
