"""FunDPS: guided diffusion over joint fields, the strongest rival of the paper's methods."""
