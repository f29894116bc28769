"""The checkpoint hook: which is asked for, what it writes on a pod, what a person should know of it."""
