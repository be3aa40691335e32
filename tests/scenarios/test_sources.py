"""The names of tools are read from their modules' sources, as far as these tell them."""

import inspect
import sys
from pathlib import Path

import pytest

from chaoslab.cli import main
from chaoslab.scenarios._modules import isolate_folder_modules
from chaoslab.scenarios.load import load_file_scenarios
from chaoslab.scenarios.located import ScenarioError
from chaoslab.scenarios.running import import_agent_and_options
from chaoslab.scenarios.sources import (
    BYTES_MAX,
    explain_missing_module,
    find_function_name,
    find_source,
    make_signature_stub,
)

SHOP = """\
import logging
from functools import partial
from orders import missing
from .near import cancel
from payments import pay as charge
from framework import tool

log = logging.getLogger(__name__)

def refund(order): ...

async def order(name): ...

@tool("other")
def decorated(order): ...

if log:
    def sometimes(order): ...

def twice(order): ...
twice = partial(twice, 1)

def bound_within(order): ...

def bind():
    global bound_within
    refund = 1

class Shop:
    def sell(self, order): ...
    @staticmethod
    def buy(order): ...
    @property
    def price(self): ...

made = partial(refund, 17)
"""
CASES = {
    "refund": "refund", "order": "order", "charge": "pay", "Shop.sell": "sell", "Shop.buy": "buy",
    "Shop.price": None, "Shop.inherited": None, "cancel": None, "decorated": None, "sometimes": None, "twice": None,
    "bound_within": None, "made": None, "log": None, "missing": None, "partial": None, "logging": None,
    "refund.more": None, "log.info": None, "bind.refund": None, "logging.info": None,
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_name_that_the_source_tells_is_told(name: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "payments.py").write_text("def pay(order): ...\n")
    assert find_function_name(f"shop:{name}", [tmp_path]) == CASES[name]


@pytest.mark.parametrize("more", ["from other import *", "def __getattr__(name): ...", "globals()['paid'] = 3"])
def test_what_a_source_may_not_show_is_no_mistake(more: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    with pytest.raises(LookupError, match=r"shop\.py has no 'refnd': did you mean 'refund'\?"):
        find_function_name("shop:refnd", [tmp_path])
    (tmp_path / "shop.py").write_text(f"{SHOP}{more}  # {'-' * 9}\n")
    assert find_function_name("shop:refnd", [tmp_path]) is None
    assert find_function_name("shop:refund", [tmp_path]) == "refund"


def test_a_function_of_a_package_is_found_where_the_package_has_it_from(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name / "shop").mkdir(parents=True)
    here = tmp_path / "first" / "shop"
    (here / "__init__.py").write_text("from .tools import refund\nfrom . import tools\nfrom shop.tools import gone\n")
    (here / "tools.py").write_text("def refund(order): ...\n")
    (here / "more.py").touch()
    (here / "deep").mkdir()
    (tmp_path / "second" / "shop" / "__init__.py").write_text("def second(order): ...\n")
    folders = [tmp_path / "first", tmp_path / "second"]
    found = [find_function_name(f"shop:{name}", folders) for name in ("refund", "tools", "gone", "more.f", "deep.f")]
    assert found == ["refund", None, None, None, None]
    assert find_function_name("shop.tools:refund", folders) == "refund"
    for module, file, name in (("shop", "__init__", "second"), ("shop.tools", "tools", "more")):
        with pytest.raises(LookupError, match=rf"{file}\.py has no '{name}'"):
            find_function_name(f"{module}:{name}", folders)
    assert find_function_name("nowhere:refund", folders) is None
    with pytest.raises(LookupError, match=r"__init__\.py has no 'refund'"):
        find_function_name("json:refund", folders)


def test_a_function_that_is_given_another_name_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("def refund(order): ...\nrefund.__name__ = 'pay'\n")
    assert find_function_name("shop:refund", [tmp_path]) is None
    assert find_function_name("shop:refnd", [tmp_path]) is None


FILE = """\
name: refund
agent: shop:answer
tools: [shop:refund]
reads: [shop:look]
prompt: Refund order 17.
faults:
  - {fault: latency, target: TARGET, delay_s: 1}
"""
TOOLS = "def refund(order): ...\n\ndef look(order): ...\n\ndef answer(prompt): ...\n"


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("refund", ""), ("look", ""), ("[refund, 'l*']", ""),
        ("refnd", "a.chaos.yaml:7:22: no tool is called 'refnd': did you mean 'refund'?"),
        ("answer", "a.chaos.yaml:7:22: no tool is called 'answer': known are look, refund"),
        ("[look, 'get_*']", "a.chaos.yaml:7:22: no tool is called 'get_*': known are look, refund"),
    ],
)  # fmt: skip
def test_a_fault_at_a_tool_that_there_is_not_is_told_without_running_it(
    target: str, said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "shop.py").write_text(TOOLS)
    (here / "a.chaos.yaml").write_text(FILE.replace("TARGET", target))
    assert main(["check", "a.chaos.yaml"]) == (2 if said else 0)
    assert capsys.readouterr().err == (said and f"{said}\n")
    assert "shop" not in sys.modules


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("{fault: slicer, target: refund}", "slicer works on the bytes of an answer, and refund is a function"),
        ("{fault: service_down, target: refund}", "service_down stops a process, and refund is a function"),
        (
            "{fault: confabulation, target: refund}",
            "confabulation works on the answers of a model, and refund is no model",
        ),
    ],
)
def test_a_fault_that_no_function_can_meet_is_told(fault: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(TOOLS)
    (tmp_path / "a.chaos.yaml").write_text(FILE.replace("{fault: latency, target: TARGET, delay_s: 1}", fault))
    with pytest.raises(ScenarioError, match=f":7:5: {said}"):
        load_file_scenarios(tmp_path / "a.chaos.yaml")


def test_faults_without_anything_to_hit_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.chaos.yaml").write_text(FILE.replace("tools: [shop:refund]\nreads: [shop:look]\n", ""))
    with pytest.raises(ScenarioError, match=":4:1: there is nothing to hit: give tools, reads or services"):
        load_file_scenarios(tmp_path / "a.chaos.yaml")


def test_a_module_that_is_no_python_is_told(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("def refund(:\n")
    (tmp_path / "a.chaos.yaml").write_text(FILE.replace("TARGET", "refund"))
    with pytest.raises(
        ScenarioError, match=r":3:9: shop:refund cannot be imported: SyntaxError: .*\(shop.py, line 1\)"
    ):
        load_file_scenarios(tmp_path / "a.chaos.yaml")


def test_a_module_that_is_too_large_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("# " + "x" * BYTES_MAX)
    assert find_source("shop", [tmp_path]) is None


def test_what_a_check_lets_pass_an_import_finds(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(f"{TOOLS}globals()['paid'] = refund\n")
    (tmp_path / "a.chaos.yaml").write_text(FILE.replace("TARGET", "paid").replace("shop:look", "shop:paid"))
    (scenario,) = load_file_scenarios(tmp_path / "a.chaos.yaml")
    with isolate_folder_modules(tmp_path):
        assert [each.__name__ for each in import_agent_and_options(scenario)[1]["reads"]] == ["refund"]


@pytest.mark.parametrize(
    ("dotted", "module", "name"),
    [
        ("httpx._nope:x", "there is no module 'httpx._nope'", None),
        ("json.decoder:nope", "", "decoder.py has no 'nope'"),
        ("json:loads", "", "loads"),
        ("httpx:Nope", "", None),  # its names come from stars
        ("six.moves.urllib:x", "", None),  # its modules are no files
        ("os.path:join", "", None),
        ("__main__:x", "", None),
    ],
)
def test_what_an_installed_package_has_is_read_without_importing_it(dotted: str, module: str, name: str | None) -> None:
    assert explain_missing_module(dotted, []) == module
    try:
        found = find_function_name(dotted, [])
    except LookupError as error:
        found = str(error.args[0])
    assert found == name


PLACES = """\
class Agent: ...
class Text(str): ...
def make(): ...
def make_named(name="x", *names, port=1, **more): ...
def answer(prompt, model="m", *, seed=0): ...
def positional(prompt, /, more): ...
def keyword(*, prompt): ...
async def application(scope, receive, send): ...
def wsgi(environ, start_response): ...
class Holder:
    @staticmethod
    def answer(prompt): ...
    @classmethod
    def of_class(cls, prompt): ...
"""


@pytest.mark.parametrize(
    "name",
    ["make", "make_named", "answer", "positional", "keyword", "application", "wsgi", "Holder.answer"],
)
def test_a_stand_in_has_the_functions_name_and_signature(name: str, tmp_path: Path) -> None:
    (tmp_path / "places.py").write_text(PLACES)
    with isolate_folder_modules(tmp_path):
        import places  # type: ignore[import-not-found]

        real = places
        for attribute in name.split("."):
            real = getattr(real, attribute)
    stand_in = make_signature_stub(f"places:{name}", [tmp_path])
    assert stand_in is not None
    assert (stand_in.__name__, inspect.iscoroutinefunction(stand_in)) == (
        real.__name__,
        inspect.iscoroutinefunction(real),
    )
    assert [(each.name, each.kind, each.default is each.empty) for each in parameters_of(stand_in)] == [
        (each.name, each.kind, each.default is each.empty) for each in parameters_of(real)
    ]


def parameters_of(function: object) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["Text", "Holder.of_class", "Holder.__init__"])
def test_what_only_an_import_tells_has_no_stand_in(name: str, tmp_path: Path) -> None:
    (tmp_path / "places.py").write_text(PLACES)
    assert make_signature_stub(f"places:{name}", [tmp_path]) is None


PROMPT_ALONE = "which cannot be called with the prompt alone"
FORMS = "it should be a WSGI or ASGI application, or a function of one argument, the request"
MISPLACED = {
    "agent: places:make": (
        f"agent is make, {PROMPT_ALONE} (too many positional arguments); what makes an agent is given as fresh"
    ),
    "agent: places:positional": f"agent is positional, {PROMPT_ALONE} (missing a required argument: 'more')",
    "agent: places:Agent": (
        "agent is the class Agent: it should be an object of it, or lab.fresh(…) of a function that makes one"
    ),
    "fresh: places:answer": (
        "fresh was given answer (missing a required argument: 'prompt'): it should be a function without arguments "
        "that makes the agent or the service, not the thing itself"
    ),
    "agent: places:answer\nservices: {bank: places:make}": (
        f"services has make as 'bank': it takes 0 arguments: {FORMS}; what makes one is given as lab.fresh(…)"
    ),
}
IN_PLACE = [
    *(f"agent: places:{name}" for name in ("answer", "make_named", "Text", "Holder.answer", "Holder.of_class")),
    *(f"fresh: places:{name}" for name in ("make", "make_named", "Agent")),
    *(f"agent: places:answer\nservices: {{bank: places:{name}}}" for name in ("application", "wsgi", "answer")),
]


@pytest.mark.parametrize(("place", "said"), [*MISPLACED.items(), *((place, "") for place in IN_PLACE)])
def test_check_refuses_what_cannot_be_called_in_its_place(
    place: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "places.py").write_text(PLACES)
    (tmp_path / "shop.py").write_text(TOOLS)
    monkeypatch.chdir(tmp_path)
    text = FILE.replace("TARGET", "refund").replace("agent: shop:answer", place)
    (tmp_path / "a.chaos.yaml").write_text(text)
    assert main(["check", "a.chaos.yaml"]) == (2 if said else 0)
    assert capsys.readouterr().err.partition(": ")[2] == (said and f"{said}\n")
    assert "places" not in sys.modules
