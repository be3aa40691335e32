"""A module that is put off loads when a name of it is asked for, and is then as any other."""

import subprocess
import sys
from pathlib import Path

LIBRARY = {
    "heavy/__init__.py": "from .command import main\nfrom .models.kind import KIND\n",
    "heavy/command.py": "print('command')\ndef main(word):\n    return [word]\n",
    "heavy/models/__init__.py": "print('models')\nfrom .kind import KIND\nMODEL = 'a model'\n__all__ = ['MODEL']\n",
    "heavy/models/kind.py": "KIND = 'a kind'\n",
}
PUT_OFF = """
from chaoslab.agent.put_off import put_off
put_off("heavy.command", "main")
put_off("heavy.models")
put_off("heavy.nothing")
put_off("nowhere.at_all")
import heavy
"""


def said_by(folder: Path, program: str) -> list[str]:
    for name, text in LIBRARY.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_whoever_imports_it_loads_nothing(tmp_path: Path) -> None:
    assert said_by(tmp_path, PUT_OFF + "print(heavy.KIND)") == ["a kind"]
    assert said_by(tmp_path, "import heavy") == ["command", "models"]


def test_a_name_loads_it_and_a_function_when_it_is_called(tmp_path: Path) -> None:
    asked = [
        "print(heavy.models.MODEL, heavy.models.KIND)",
        "from heavy.models import *; print(MODEL)",
        "print(heavy.main('a'), heavy.main('b'))",
        "import heavy.command; print(heavy.command.main('a'), heavy.main('b'), heavy.command.main is heavy.main)",
        "print(hasattr(heavy.command, '__wrapped__'), hasattr(heavy.command, 'nothing'))",
    ]
    assert [said_by(tmp_path, f"{PUT_OFF}{each}") for each in asked] == [
        ["models", "a model a kind"],
        ["models", "a model"],
        ["command", "['a'] ['b']"],
        ["command", "['a'] ['b'] False"],
        ["command", "False False"],
    ]


def test_what_is_loaded_already_stays(tmp_path: Path) -> None:
    program = f"import heavy.command as before\n{PUT_OFF}\nprint(heavy.command is before, 'main' in vars(before))"
    assert said_by(tmp_path, program) == ["command", "models", "True True"]


def test_the_agent_loads_neither_the_models_of_langsmith_nor_the_command_of_httpx() -> None:
    program = (
        "import sys, chaoslab.agent.command; print(*{'langsmith.types.run', 'pygments', 'langsmith'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["langsmith"]
