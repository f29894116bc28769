"""The checkpoint hook: which one a pod asks for, what it adds to the pod, and the warnings about it."""
