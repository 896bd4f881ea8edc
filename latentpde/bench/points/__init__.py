"""Studies that score at points: readings are a long table, and what is asked for are places and times."""
