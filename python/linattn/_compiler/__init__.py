"""Compilation of user-written modules, deadlines, and explanations of decisions."""
