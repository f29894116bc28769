"""Which tier a pod gets: the steps, the limits, and what holds at reinvocation."""
