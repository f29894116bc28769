"""Translates between AdmissionReview bytes and the policy; knows the cluster and the ledger as protocols."""
