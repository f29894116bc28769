"""`make preemption-demo` measures what a preemption costs, `make placement-demo` on which nodes gangs run."""
