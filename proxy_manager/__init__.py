"""The nemesis: makes the proxies, rolls the dice for each call that asks, arms lanes of their own, and heals."""
