"""Feature maps: by name, as traced functions, and of whole tokens."""
