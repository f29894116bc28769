"""One manifest for each row of the table, each hook and each warning, with what `gpu-tiers review` says of it."""
