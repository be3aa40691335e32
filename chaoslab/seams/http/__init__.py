"""The seam of HTTP through httpx, on the client's side."""
