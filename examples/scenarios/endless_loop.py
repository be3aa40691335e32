"""Does the agent ever loop, when a tool keeps answering nothing?"""

from collections.abc import Callable

from shop import search


def naive() -> Callable[[str], str]:
    def agent(prompt: str) -> str:
        found: list[str] = []
        while not found:
            found = search("kettle")
        return f"I found {found[0]}."

    return agent


def careful() -> Callable[[str], str]:
    def agent(prompt: str) -> str:
        for _ in range(3):
            if found := search("kettle"):
                return f"I found {found[0]}."
        return "I could not find a kettle: the search answers nothing."

    return agent
