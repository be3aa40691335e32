"""Reading answers: their values, their likeness, and what they admit."""
