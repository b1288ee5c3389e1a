"""The named families, generated from the compiler's table."""
