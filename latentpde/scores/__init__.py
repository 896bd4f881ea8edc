"""Scores: what is measured of a reconstruction against the truth, which only this room and the benchmark see."""
