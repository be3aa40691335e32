"""`chaoslab init`, `demo` and `stress`: each works at once, and says what it found."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from chaoslab.cli import main
from chaoslab.core.events import StoryLeftOut
from chaoslab.record.history import History
from chaoslab.scenarios.agent_tools import find_tools
from chaoslab.scenarios.load import load_file_scenarios
from chaoslab.scenarios.new_project import find_install_address, render_workflow, write_files
from chaoslab.scenarios.running import Result
from tests.cli_parts import Typed, chaoslab, execute
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)


OTHERS = ("cacheprovider", "langsmith_plugin", "hypothesispytest", "anyio")
PYTEST = [sys.executable, "-m", "pytest", "-q", *(part for other in OTHERS for part in ("-p", f"no:{other}"))]
"""Without the plug-ins of others, which load most of their libraries."""


def test_a_new_project_passes_and_its_naive_agent_fails(tmp_path: Path) -> None:
    made = chaoslab(tmp_path, "init", "mine")
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.splitlines()[-1] == "next: cd mine; chaoslab test; pytest"
    assert ("needs the variable CHAOSLAB of your repository" in made.stdout) is (find_install_address() is None)
    folder = tmp_path / "mine"
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == {
        "refund.chaos.yaml", "support_agent.py", "test_chaos.py", ".github/workflows/chaos.yml",
    }  # fmt: skip
    passed = chaoslab(folder, "test")
    assert passed.returncode == 0
    assert re.fullmatch(r"report logs/[\d-]+/report\.html\n", passed.stderr)
    assert passed.stdout.startswith("PASSED   refund: 50 of 50 trials passed")
    failed = chaoslab(folder, "test", "--set", "fresh=support_agent:naive")
    assert failed.returncode == 1
    assert "harm: refund twice" in failed.stdout


def test_the_test_of_a_new_project_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["init", str(tmp_path / "mine")]) == 0
    monkeypatch.chdir(tmp_path / "mine")
    Path("test_naive.py").write_text(Path("test_chaos.py").read_text().replace("careful)", "naive)"))
    ended = execute(PYTEST)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "1 failed, 1 passed" in ended.stdout
    assert "FAILED test_naive.py" in ended.stdout


def test_ones_own_agent_is_named_in_the_scenario(tmp_path: Path, typed: Typed) -> None:
    out = typed.out("init", tmp_path / "mine", "--agent", "shop.agent:answer")
    assert "note: shop.agent:answer: there is no module 'shop'\n" in out
    assert not (tmp_path / "mine" / "support_agent.py").exists()
    (tmp_path / "mine" / "shop").mkdir()
    (tmp_path / "mine" / "shop" / "agent.py").write_text("def answer(prompt):\n    return prompt\n")
    assert typed("check", tmp_path / "mine").code == 0
    error = typed.refused("init", tmp_path / "other", "--agent", "shop.agent")
    assert "--agent shop.agent should be module:name, as in shop.agent:answer\n" in error
    assert not (tmp_path / "other").exists()


SHOP = """
from shop import mail
from shop.tools import get_order as look, pay


def answer(prompt):
    price = look(17)["price"]
    try:
        said = pay(17, price)
    except TimeoutError:
        said = pay(17, price)
    return mail.send("ana", said)
"""


def test_a_project_whose_tests_nothing_here_can_run_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: Typed
) -> None:
    note = "note: pytest is not installed here, and runs the tests above: pip install pytest\n"
    assert note not in typed.out("init", tmp_path / "one")
    monkeypatch.setitem(sys.modules, "pytest", None)
    assert note in typed.out("init", tmp_path / "other")


def test_a_scenario_for_ones_own_agent_runs_and_finds_what_is_wrong(
    here: Path, monkeypatch: pytest.MonkeyPatch, typed: Typed
) -> None:
    shop = here / "shop"
    shop.mkdir()
    (shop / "agent.py").write_text(SHOP)
    (shop / "tools.py").write_text("def get_order(n): return {'price': 3}\ndef pay(n, sum): return 'paid'\n")
    (shop / "mail.py").write_text("def send(to, text):\n    return text\n")
    said = typed.out("init", "chaos", "--agent", "shop.agent:answer", "--prompt", "Refund 17.").splitlines()
    assert said[:3] == ["chaos/answer.chaos.yaml", "chaos/test_chaos.py", ".github/workflows/chaos.yml"]
    assert said[-1] == "next: chaoslab test chaos; python -m pytest chaos"
    (made,) = load_file_scenarios(here / "chaos" / "answer.chaos.yaml")
    assert sorted(made.function_names) == ["get_order", "pay", "send"]
    assert [each.targets for each in made.faults] == [("pay",), ("get_order",)]
    ast.parse((here / "chaos" / "test_chaos.py").read_text())
    monkeypatch.setattr(sys, "path", [*sys.path])
    ended = typed("test", "chaos")
    assert ended.code == 1
    assert "harm: pay twice" in ended.out


@pytest.mark.parametrize(
    ("source", "changes", "reads"),
    [
        ("def pay(n): ...\ndef run(p):\n    return pay(1)", ["pay"], []),
        ("def pay(n): ...\ndef _do(n):\n    return pay(n)\nasync def run(p):\n    _do(1)", ["pay"], []),
        ("def pay(n): ...\ndef help(n): ...\nTOOLS = {'pay': pay}\ndef run(p):\n    help(TOOLS)", ["pay"], []),
        (
            "@tool\ndef read_mail(): ...\nbot = make(tools=[read_mail])\ndef run(p):\n    return bot(p)",
            [],
            ["read_mail"],
        ),
        ("class Bot:\n    def run(self, p):\n        return pay(p)\ndef pay(n): ...\nrun = Bot().run", ["pay"], []),
        ("import json\ndef run(p):\n    return json.dumps(run.__name__)", [], []),
        (
            "def pay(n): ...\ndef hint(n): ...\nALL_TOOLS = [pay]\nrun = create_agent(M, [hint, *ALL_TOOLS])",
            ["hint", "pay"],
            [],
        ),
        ("run = Agent(M)\n@run.tool_plain\ndef pay(n): ...", ["pay"], []),
        (
            "class Desk:\n    def pay(self, n): ...\nclass Bot:\n    def __init__(self):\n        self.desk = Desk()\n"
            "    def ask(self, p):\n        return self.desk.pay(self.get_sum(p))\n    def get_sum(self, p): ...\n"
            "def run(p):\n    return Bot().ask(p)",
            ["Desk.pay"],
            ["Bot.get_sum"],
        ),
        (
            "from langgraph.graph import StateGraph\ndef pay(n): ...\ndef ask(state): ...\nbuilder = StateGraph(dict)\n"
            "builder.add_node('ask', ask)\nbuilder.add_node('tools', ToolNode([pay]))\nrun = builder.compile()",
            ["pay"],
            [],
        ),
        (
            "bot = ConversableAgent('bot')\nuser = ConversableAgent('user')\n"
            "@user.register_for_execution()\n@other.register_for_llm(description='pays')\ndef pay(n): ...\n"
            "def look(n): ...\nregister_function(look, caller=bot, executor=user)\n"
            "def run(p):\n    return user.initiate_chat(bot, message=p)",
            ["pay", "look"],
            [],
        ),
        (
            "def pay(n): ...\ndef get_sum(n): ...\npay_tool = FunctionTool.from_defaults(fn=pay)\n"
            "run = FunctionAgent(tools=[pay_tool, FunctionTool.from_defaults(get_sum)])",
            ["pay"],
            ["get_sum"],
        ),
        ("def pay(n): ...\ndef get_tools():\n    return [pay]\nrun = Agent(M, tools=get_tools())", ["pay"], []),
        (
            "import functools\nSPEC = [{'type': 'function', 'function': {'name': 'pay', 'parameters': {}}},\n"
            "        {'name': 'get_sum', 'input_schema': {}}, {'name': 'ann', 'colour': {}}]\n"
            "def pay(n): ...\n@functools.lru_cache\ndef get_sum(n): ...\ndef ann(): ...\n"
            "def call(name, n):\n    return globals()[name](n)\ndef run(p):\n    return call(ask(p, SPEC), 1)",
            ["pay"],
            ["get_sum"],
        ),
    ],
)
def test_the_tools_of_an_agent_are_read_from_its_source(
    source: str, changes: list[str], reads: list[str], tmp_path: Path
) -> None:
    (tmp_path / "bot.py").write_text(source)
    found = find_tools("bot:run", [tmp_path])
    assert (found.changes, found.reads) == ([f"bot:{each}" for each in changes], [f"bot:{each}" for each in reads])


MODELLED = """
import json
from openai import OpenAI

client = OpenAI()   # it asks for a key


def get_price(order: int) -> int:
    return 30


def refund(order: int, amount: int, *, note: str = "") -> str:
    return "done"


TOOLS = {"get_price": get_price, "refund": refund}


def make():
    def agent(prompt):
        messages = [{"role": "user", "content": prompt}]
        while True:
            said = client.chat.completions.create(model="gpt-4o-mini", messages=messages).choices[0].message
            if not said.tool_calls:
                return said.content
            messages.append(said)
            for call in said.tool_calls:
                try:
                    result = str(TOOLS[call.function.name](**json.loads(call.function.arguments)))
                except Exception as error:
                    result = f"Error: {error}"
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return agent
"""


def test_an_agent_with_a_model_runs_at_once_by_a_script_and_without_a_key(here: Path, typed: Typed) -> None:
    Path("bot.py").write_text(MODELLED)
    made = chaoslab(here, "init", "--agent", "bot:make", "--prompt", "Refund 17, which is 30.")
    assert made.stdout.splitlines()[:3] == ["make.chaos.yaml", "my_model.py", "test_chaos.py"]
    assert "fresh: bot:make\n" in Path("make.chaos.yaml").read_text()
    assert (
        'lab.call("get_price", order=17),\n        lab.call("refund", order=17, amount=30),'
        in Path("my_model.py").read_text()
    )
    ended = chaoslab(here, "test", "--no-logs")
    assert "make: 20 of 20 trials passed" in ended.stdout, ended.stdout + ended.stderr
    ended = execute(PYTEST)
    assert "1 passed" in ended.stdout, ended.stdout + ended.stderr
    assert "make.chaos.yaml is there already" in typed.refused("init", "--agent", "bot:make")
    Path("bot.py").write_text(MODELLED.replace("make", "build"))
    assert typed.out("init", "--agent", "bot:build").splitlines()[:3] == [
        "build.chaos.yaml", "build_model.py", "test_build_chaos.py",
    ]  # fmt: skip


DISPATCHED = """
def execute(name, values):
    if name == "refund":
        return refund(**values)
    raise LookupError(name)
"""


def test_a_tool_that_a_helper_calls_by_its_name_is_found_by_its_schema_and_asked_with_its_types(
    here: Path, typed: Typed
) -> None:
    properties = {"order": {"type": "integer"}, "amount": {"type": "number"}, "lines": {"type": "array"}, "to": {}}
    schema = {"name": "refund", "description": "pay back", "parameters": {"type": "object", "properties": properties}}
    spec = f"SPEC = [{{'type': 'function', 'function': {schema}}}]\n"
    source = MODELLED.replace('TOOLS = {"get_price": get_price, "refund": refund}\n', spec + DISPATCHED)
    source = source.replace("refund(order: int, amount: int, *, note", "refund(order, amount, lines, to, *, note")
    source = source.replace("TOOLS[call.function.name](**", "execute(call.function.name, ")
    Path("bot.py").write_text(source)
    typed.out("init", "--agent", "bot:make", "--prompt", "Refund 17.")
    assert "tools: [bot:refund]" in Path("make.chaos.yaml").read_text()
    assert "lab.call(\"refund\", order=17, amount=1.0, lines=[], to='x')," in Path("my_model.py").read_text()
    ended = chaoslab(here, "test", "--no-logs")
    assert "make: 20 of 20 trials passed" in ended.stdout, ended.stdout + ended.stderr


@pytest.mark.usefixtures("here")
def test_tools_and_models_that_the_source_does_not_show_are_said(typed: Typed) -> None:
    Path("bot.py").write_text(
        "import groq, openai\nfrom kit import load, Search\nclass GetOrder(BaseTool):\n    def _run(self, n): ...\n"
        "def pay(n): ...\nother = Agent(M, tools=load('mail'))\nrun = Agent(other, tools=[Search(), GetOrder(), pay])\n"
    )
    said = typed.out("init", "--agent", "bot:run").splitlines()
    notes = [line.removesuffix(" in run.chaos.yaml") for line in said if " in run.chaos.yaml" in line]
    assert notes[:4] == [
        "note: the tools of tools=load('mail') (bot.py:6) are not in the source: name them",
        "note: the tool Search (bot.py:7) is of another package: name the function it calls",
        "note: the tool GetOrder (bot.py:3) is a class: name its method, as {get_order: bot:GetOrder._run}",
        "note: no script answers for api.openai.com: give it a model of its own",
    ]


@pytest.mark.parametrize(
    ("source", "host"),
    [
        ("from langchain_groq import ChatGroq\nM = 'gpt-4o'", "api.groq.com"),
        ("from openai import OpenAI\nM = OpenAI(base_url='https://api.groq.com/openai/v1')", "api.groq.com"),
        ("M = init_chat_model('openai:gpt-4o')", "api.openai.com"),
    ],
)
def test_the_models_api_is_told_by_the_surest_sign(source: str, host: str, tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(f"{source}\ndef run(p): ...\n")
    assert find_tools("bot:run", [tmp_path]).hosts == [host]


def test_the_workflow_runs_what_the_project_holds_and_no_more(tmp_path: Path) -> None:
    for name, options, runs in (
        ("mine", (), ["chaoslab test", "python -m pytest"]),
        ("own", ("--agent", "a:b"), ["chaoslab test"]),
    ):
        assert main(["init", str(tmp_path / name), *options]) == 0
        steps = re.findall(r"- run: (.+)", (tmp_path / name / ".github" / "workflows" / "chaos.yml").read_text())
        assert steps[1:] == runs
        assert steps[0].endswith(" pytest") is (len(runs) == 2)


@pytest.mark.parametrize(
    ("origin", "remote", "address"),
    [
        ("", "", ""),  # from an index
        ('{"url": "https://x.org/c", "vcs_info": {"vcs": "git", "commit_id": "abc"}}', "", "git+https://x.org/c@abc"),
        ('{"url": "file://FOLDER", "dir_info": {}}', "https://me:token@x.org/c.git", "git+https://x.org/c.git"),
        ('{"url": "file://FOLDER", "dir_info": {}}', "", None),
    ],
)
def test_the_workflow_installs_chaoslab_from_where_this_one_came(
    origin: str, remote: str, address: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "chaoslab-0.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: chaoslab\nVersion: 0.1.0\n")
    if origin:
        (folder / "direct_url.json").write_text(origin.replace("FOLDER", str(tmp_path)))
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    if remote:
        subprocess.run(["git", "-C", str(tmp_path), "remote", "add", "origin", remote], check=True)
    monkeypatch.syspath_prepend(tmp_path)
    assert find_install_address() == address
    step = next(line for line in render_workflow(address, test=False).splitlines() if "pip install" in line)
    assert ("$CHAOSLAB" in step) is (address != "")
    assert (f"CHAOSLAB: {address}\n" in render_workflow(address, test=False)) is bool(address)


def test_nothing_is_overwritten(tmp_path: Path, typed: Typed) -> None:
    (tmp_path / "test_chaos.py").write_text("mine")
    error = typed.refused("init", tmp_path)
    assert error == f"{tmp_path}/test_chaos.py is there already: name another folder, or move it away\n"
    assert [path.name for path in tmp_path.iterdir()] == ["test_chaos.py"]
    typed.refused("init", tmp_path / "test_chaos.py")


def test_a_second_agent_leaves_the_ci_job_as_it_is(here: Path, typed: Typed) -> None:
    Path("bot.py").write_text("def pay(n): ...\ndef one(p):\n    return pay(1)\ndef two(p):\n    return pay(2)\n")
    typed.out("init", "a", "--agent", "bot:one", "--prompt", "x")
    job = Path(".github/workflows/chaos.yml")
    job.write_text("mine")
    said = typed.out("init", "b", "--agent", "bot:two", "--prompt", "x")
    assert "note: the CI job of .github/workflows/chaos.yml, which is there already, stays as it is\n" in said
    assert job.read_text() == "mine"
    assert (here / "b" / "two.chaos.yaml").is_file()


@pytest.mark.usefixtures("here")
def test_a_second_agent_of_one_name_has_its_module_in_the_names_of_its_files(typed: Typed) -> None:
    for module in ("first", "second"):
        Path(f"{module}.py").write_text("def pay(n): ...\ndef agent(p):\n    return pay(1)\n")
    typed.out("init", "--agent", "first:agent", "--prompt", "x")
    said = typed.out("init", "--agent", "second:agent", "--prompt", "x")
    assert said.splitlines()[:2] == ["second_agent.chaos.yaml", "test_second_agent_chaos.py"]
    assert Path("second_agent.chaos.yaml").read_text().splitlines()[1:3] == [
        "name: second_agent",
        "agent: second:agent",
    ]
    for module, file in (("first", "agent"), ("second", "second_agent")):
        assert typed.refused("init", "--agent", f"{module}:agent").startswith(f"{file}.chaos.yaml is there already")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["shop/first.py"], "shop.first:NAME"),
        (["first:agent"], "first:agent"),
        (["--agent", "first.py:agent"], "first:agent"),
    ],
)
@pytest.mark.usefixtures("here")
def test_an_agent_that_is_named_by_its_file_or_as_the_folder_is_refused_with_what_to_type(
    words: list[str], meant: str, typed: Typed
) -> None:
    assert typed.refused("init", *words).endswith(f": did you mean --agent {meant}?\n")
    assert not [*Path().iterdir()]


def test_the_demonstration_finds_a_failure_and_explains_it(typed: Typed) -> None:
    said = typed.out("demo", "-n", "60")
    naive, careful = (line for line in said.splitlines() if line.startswith("the "))
    assert " harm" in naive
    assert " harm" not in careful
    assert "harm: refund twice; the state's 17.refunded is 98.0 instead of 49.0" in said
    assert "  for _ in range(3):" in said
    assert "--chaos-level: 11 should be a number from 0 to 10" in typed.refused("demo", "--chaos-level", "11")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: Typed) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "support_agent", raising=False)
    monkeypatch.chdir(tmp_path)  # where its runs are written
    assert typed("init", tmp_path).code == 0
    return tmp_path / "refund.chaos.yaml"


def test_stress_tells_the_share_at_each_level_and_where_it_breaks(project: Path, typed: Typed) -> None:
    chart, words = project.parent / "stress.png", ("--iterations", "40", "--levels", "0,1", "--no-logs")
    said = typed.out("stress", project, *words, "--chart", chart).splitlines()
    assert said[0] == "refund: 40 trials at each level, beside its own 2 faults"
    assert said[1].split("  ")[-1] == "open"
    assert said[2].split()[:7] == ["0", "0", "%", "100%", "91%–100%", "20", "0"]
    breaks, *failed = said[-said[::-1].index("it breaks at level 1: less than 100% of its trials pass") - 1 :]
    assert breaks.startswith("it breaks at level 1")
    harm = (
        "    harm: refund, but its amount is '48.2' instead of '49.0'; missing: the state's 17.refunded is 48.2, "
        "which was 0.0, instead of 49.0; the answer does not say so: says= finds no admission in it"
    )
    assert failed[:3] == ["  trial 19:", harm, "    it met outdated_info on get_order"], "harm comes first"
    assert failed[3].endswith(" --trial 19 --set chaos_level=1")
    assert failed[4:6] == ["  trial 7:", "    failed: no answer: agent error (ToolError: 401 Unauthorized)"]
    assert chart.read_bytes().startswith(b"\x89PNG")
    again = json.loads(typed.out("stress", project, *words, "--json", "--chart", chart.with_suffix(".svg")))
    assert "<svg" in chart.with_suffix(".svg").read_text(encoding="utf-8")
    first, second = again["steps"]
    assert (first["passed"], first["breaks"], second["breaks"]) == (40, False, True)
    assert second["interval"][0] < second["passed"] / 40 < second["interval"][1]


def test_the_stories_of_trials_that_passed_are_not_held(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[Result] = []
    monkeypatch.setattr("chaoslab.cli.test._render_result", lambda result, _: str(held.append(result)))  # type: ignore[func-returns-value]
    assert main(["test", str(project), "--set", "chaos_level=0", "-n", "5", "--no-logs"]) == 0
    (first, *others) = held[0].rulings
    assert first.trial.story()
    assert not any(hasattr(each.trial._result, "book") for each in others)
    assert {str(each.trial.outcome) for each in others} == {"correct"}


def test_stress_writes_its_runs_in_the_form_that_is_asked_for(project: Path, tmp_path: Path) -> None:
    logs = tmp_path / "own logs"
    assert main(["stress", str(project), "--iterations", "2", "--levels", "0", "--quiet", "--logs", str(logs),
                 "--keep", "failed"]) == 0  # fmt: skip
    assert len([*History.read(logs / "latest").find_events(StoryLeftOut)]) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--levels", "0,11"], "0,11 should be levels from 0 to 10, each once, with commas"),
        (["--levels", "1,1"], "1,1 should be levels"),
        (["--levels", ""], "should be levels from"),
        (["--iterations", "0"], "0 should be a whole number from 1"),
        (["--chart", "x.gif"], "--chart x.gif should end in .png or .svg"),
        (["--chart", "x.html"], "--chart x.html should end in .png or .svg; its table is printed"),
    ],
)
def test_what_stress_cannot_mean_is_refused(arguments: list[str], said: str, project: Path, typed: Typed) -> None:
    assert said in typed.refused("stress", project, *arguments)


def test_no_file_is_left_of_those_that_cannot_all_be_written(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("")
    with pytest.raises(ValueError, match="there is a file: name a folder"):
        write_files({tmp_path / "a": ""}, tmp_path / "there")
    with pytest.raises(OSError, match="there"):
        write_files({tmp_path / "a": "x", tmp_path / "there" / "b": "x"}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
