"""A physics-informed network for each case."""
