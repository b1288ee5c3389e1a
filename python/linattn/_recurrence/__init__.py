"""`attention`, `scan`, `bidirectional` and their states: plans, and the MLIR that they compile."""
