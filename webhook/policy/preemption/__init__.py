"""Preemption for devices of DRA: which nodes are reserved for a pod, and which pods are evicted there."""
