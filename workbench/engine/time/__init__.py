"""What each step of a program costs in cycles, and the trace they make."""
