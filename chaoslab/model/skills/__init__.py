"""One file per kind of work: how a clause asks for it, and the story of doing it.

Each has `read(clause, draft) -> bool`: it adds its steps to the draft and says whether the clause was its own.
"""
