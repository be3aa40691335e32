"""The nemesis: makes the proxies, rolls the dice for each call, arms a lane for it, and heals."""
