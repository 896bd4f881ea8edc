"""The exact posterior: the source is integrated out, the coefficients are sampled globally."""
