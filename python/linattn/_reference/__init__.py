"""The oracles of `linattn.reference`: formulas in float64, token by token."""
