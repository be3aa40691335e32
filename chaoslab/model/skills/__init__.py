"""One file per kind of work: the clauses that ask for it, and the story that does it. Each has `read(clause, draft) ->
bool`: it adds its steps to the draft, and returns True if it accepted the clause."""
