"""Question sets with gold answers: reading, checking and measuring against them."""
