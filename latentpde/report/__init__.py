"""Pictures and pages about observations, reconstructions and simulated data."""
