"""The names of tools are read from their modules' sources, as far as these tell them."""

import sys
from pathlib import Path

import pytest

from chaoslab.cli import main
from chaoslab.scenarios._modules import use_modules
from chaoslab.scenarios.load import load
from chaoslab.scenarios.located import ScenarioError
from chaoslab.scenarios.running import import_parts
from chaoslab.scenarios.sources import explain_lost, find_function_name

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
    (tmp_path / "second" / "shop" / "__init__.py").write_text("def second(order): ...\n")
    folders = [tmp_path / "first", tmp_path / "second"]
    found = [find_function_name(f"shop:{name}", folders) for name in ("refund", "tools", "gone")]
    assert found == ["refund", None, None]
    assert find_function_name("shop.tools:refund", folders) == "refund"
    with pytest.raises(LookupError, match=r"__init__\.py has no 'second'"):
        find_function_name("shop:second", folders)
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
        load(tmp_path / "a.chaos.yaml")


def test_faults_without_anything_to_hit_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.chaos.yaml").write_text(FILE.replace("tools: [shop:refund]\nreads: [shop:look]\n", ""))
    with pytest.raises(ScenarioError, match=":4:1: there is nothing to hit: give tools, reads or services"):
        load(tmp_path / "a.chaos.yaml")


def test_a_module_that_is_no_python_is_told(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("def refund(:\n")
    (tmp_path / "a.chaos.yaml").write_text(FILE.replace("TARGET", "refund"))
    with pytest.raises(
        ScenarioError, match=r":3:9: shop:refund cannot be imported: SyntaxError: .*\(shop.py, line 1\)"
    ):
        load(tmp_path / "a.chaos.yaml")


def test_what_a_check_lets_pass_an_import_finds(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(f"{TOOLS}globals()['paid'] = refund\n")
    (tmp_path / "a.chaos.yaml").write_text(FILE.replace("TARGET", "paid").replace("shop:look", "shop:paid"))
    (scenario,) = load(tmp_path / "a.chaos.yaml")
    with use_modules(tmp_path):
        assert [each.__name__ for each in import_parts(scenario)[1]["reads"]] == ["refund"]


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
    assert explain_lost(dotted, []) == module
    try:
        found = find_function_name(dotted, [])
    except LookupError as error:
        found = str(error.args[0])
    assert found == name
