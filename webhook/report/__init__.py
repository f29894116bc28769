"""Tenants, workloads, posture and preemptions, as the command line, metrics and page show them."""
