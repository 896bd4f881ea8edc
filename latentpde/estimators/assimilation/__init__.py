"""Data assimilation: another method's field, corrected towards the readings."""
