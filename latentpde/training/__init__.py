"""Training: the one loop, its configuration, data, tasks and checkpoints."""
