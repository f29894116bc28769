"""`make preemption-demo`: a training Job loses its GPUs on a real node, in three cases, and what each one costs."""
