"""The tier of a pod: the steps, the limits, and what holds at reinvocation."""
