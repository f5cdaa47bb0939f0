"""What the step benchmarks share: a step's rows and model, and the ways to compute it."""
