"""The compiler itself: modules of the user's own, deadlines, and explanations of its decisions."""
