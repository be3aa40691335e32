"""The seam of a user's services: HTTP on the server's side, where the requests of every client come by."""
