"""What an exact posterior can tell beyond the field: which PDE, is it wrong, what is known, where next."""
