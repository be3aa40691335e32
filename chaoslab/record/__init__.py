"""What a run writes down and what is read of it."""
