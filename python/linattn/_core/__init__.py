"""The arguments of a call: arrays, checks, errors in the user's terms, and the recipe of a plan."""
