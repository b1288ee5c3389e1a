"""The named families, made from the compiler's table."""
