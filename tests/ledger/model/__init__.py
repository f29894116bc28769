"""Models of the ledger, which search all interleavings within small bounds."""
