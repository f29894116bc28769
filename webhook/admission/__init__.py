"""Translates between AdmissionReview bytes and the policy; uses the cluster and the ledger as Protocols."""
