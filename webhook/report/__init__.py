"""Tenants, workloads, posture and preemptions as people ask for them: what the command line, metrics and page show."""
