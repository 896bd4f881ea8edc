"""Tasks on which DiffusionPDE, FunDPS and boundary-constrained Gaussian processes report, as far as they are linear."""
