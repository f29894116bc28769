"""`make preemption-demo` measures what a preemption costs, `make placement-demo` where gangs come to lie."""
