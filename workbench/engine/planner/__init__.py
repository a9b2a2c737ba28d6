"""The planner of matmuls and convolutions: from a node to a problem, from a problem to the cheapest plan that fits."""
