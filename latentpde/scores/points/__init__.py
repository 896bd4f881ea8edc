"""Readings in a long table: predictions at any place and time, what takes no physics to make, and their scores."""
