"""Reading and writing the text of agent files."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from runs.services.agentfile.schema import AgentFile
from runs.services.agentfile.text import (
    MAX_FILE_CHARS,
    AgentFileRefused,
    parse_agentfile,
    parse_within_limits,
    render_agentfile,
)
from tools.text.json_yaml import JsonYamlDumper

AGENT = "agentfile: 1\nagents: [{slug: a, provider: p, model: m, %s}]"


def places(text: str) -> list[str]:
    """Return the places of the mistakes in `text`."""
    with pytest.raises(AgentFileRefused) as refused:
        parse_agentfile(text)
    assert all(e.message.endswith(".") for e in refused.value.errors)
    return [error.field for error in refused.value.errors]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param("agentfil: 1\nagentfile: 1", "agentfil", id="top"),
        pytest.param(AGENT % "modle: x", "agents[0].modle", id="agent"),
        pytest.param(
            AGENT % "executor: {max_iteration: 5}",
            "agents[0].executor.max_iteration",
            id="executor",
        ),
        pytest.param(
            AGENT % "executor: {budget: {token: 5}}",
            "agents[0].executor.budget.token",
            id="budget",
        ),
        pytest.param(
            AGENT % "tools: [add, {tool: b, polcy: ask}]",
            "agents[0].tools[1].polcy",
            id="tool-use",
        ),
        pytest.param(
            "agentfile: 1\nproviders: [{slug: a, key: x}]", "providers[0].key", id="key"
        ),
        pytest.param(
            "agentfile: 1\nprompts: [{slug: p, template: '', x: 1}]",
            "prompts[0].x",
            id="prompt",
        ),
        pytest.param(
            "agentfile: 1\ntools: [{slug: t}, {slug: u, approvl: x}]",
            "tools[1].approvl",
            id="tool",
        ),
    ],
)
def test_an_unknown_field_is_named_with_its_place(text, place):
    assert places(text) == [place]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param("", "file", id="empty"),
        pytest.param("hello", "file", id="text"),
        pytest.param("[1]", "file", id="list"),
        pytest.param("agents: []", "agentfile", id="no-version"),
        pytest.param("agentfile: 2", "agentfile", id="other-version"),
        pytest.param("agentfile: 1\nagents: 5", "agents", id="no-list"),
        pytest.param("agentfile: 1\nagents: [5]", "agents[0]", id="no-entry"),
        pytest.param("agentfile: 1\ntools: [{}]", "tools[0].slug", id="no-slug"),
        pytest.param(
            "agentfile: 1\ntools: [{slug: a b}]", "tools[0].slug", id="bad-slug"
        ),
        pytest.param(
            'agentfile: 1\ntools: [{slug: "a\\n"}]', "tools[0].slug", id="slug-line"
        ),
        pytest.param(
            "agentfile: 1\ntools: [{slug: a, timeout: '5'}]",
            "tools[0].timeout",
            id="number-as-text",
        ),
        pytest.param(
            "agentfile: 1\ntools: [{slug: a, name: 5}]", "tools[0].name", id="text"
        ),
        pytest.param(
            "agentfile: 1\ntools: [{slug: a, retries: 9}]", "tools[0].retries", id="max"
        ),
        pytest.param(
            AGENT % "executor: {handle_parsing_errors: 5}",
            "agents[0].executor.handle_parsing_errors",
            id="union",
        ),
        pytest.param(AGENT % "tools: [{policy: ask}]", "agents[0].tools[0]", id="none"),
        pytest.param(
            "agentfile: 1\nprompts: [{slug: p}]", "prompts[0]", id="prompt-without-text"
        ),
        pytest.param("a: [", "line 1, column 5", id="broken-yaml"),
        pytest.param(
            "agentfile: 1\na: b: c", "line 2, column 5", id="broken-second-line"
        ),
        pytest.param("{agentfile: 1", "line 1, column 1", id="broken-flow"),
        pytest.param("agentfile: 1\nagentfile: 1", "line 1, column 1", id="twice"),
        pytest.param('{"agentfile": 1, "agentfile": 1}', "file", id="twice-json"),
        pytest.param(
            "a: !!python/object:os.system {}", "line 1, column 4", id="python-tag"
        ),
        pytest.param("a: !!binary aGk=", "a", id="bytes"),
        pytest.param("a: !!timestamp 2026-01-01", "a", id="date"),
        pytest.param("1: a", "file", id="number-as-key"),
        pytest.param('a: "\\0"', "a", id="nul"),
        pytest.param('a: ["\\ud800"]', "a[0]", id="half-a-character"),
        pytest.param('{"a": "\\ud800"}', "a", id="half-a-character-json"),
        pytest.param("a: 1e999", "a", id="infinite"),
        pytest.param('{"a": NaN}', "a", id="nan-json"),
        pytest.param("\x07", "line 1, column 1", id="control-character"),
        pytest.param("a: " + "9" * 5000, "file", id="long-number"),
        pytest.param("a: " + "[" * 5000, "file", id="deep"),
        pytest.param("a: " + "[" * 80 + "]" * 80, "file", id="deep-closed"),
        pytest.param('{"a":' * 30000, "file", id="deep-json"),
        pytest.param("a: &x [*x]", "file", id="ring"),
        pytest.param("x" * (MAX_FILE_CHARS + 1), "file", id="long"),
    ],
)
def test_a_wrong_file_is_a_sentence(text, place):
    assert places(text) == [place]


def test_names_all_mistakes_at_once():
    text = "agentfile: 1\ntools: [{slug: '?'}, {slug: a, effect: none, x: 1}]"

    assert places(text) == ["tools[0].slug", "tools[1].effect", "tools[1].x"]


@pytest.mark.parametrize("merge", ["", "<<: "])
def test_a_small_file_cannot_become_a_large_one(merge):
    rows = ["a0: &a0 {x: y}"]
    rows += [
        f"a{n}: &a{n} {{{merge or 'x: '}[{f'*a{n - 1}, ' * 9}]}}" for n in range(1, 12)
    ]

    (place,) = places("\n".join(rows))

    assert place.startswith(("file", "line"))


def test_plain_words_stay_words():
    text = "a: [yes, no, on, 12:30, 2026-01-01, 010, 0x1f, 1_000, 'true', .5]"

    assert parse_within_limits(text) == {
        "a": [
            *("yes", "no", "on", "12:30", "2026-01-01", "010", "0x1f", "1_000"),
            *("true", ".5"),
        ]
    }


def test_reads_json():
    in_json = parse_agentfile('{"agentfile": 1, "tools": [{"slug": "a"}]}')

    assert in_json == parse_agentfile("agentfile: 1\ntools: [{slug: a}]")


def test_reads_json_with_tabs_and_pairs_of_escapes():
    values = parse_within_limits('{\n\t"a": "\\ud83d\\ude00"\n}')

    assert values == {"a": "😀"}


def test_writes_nothing_that_has_its_default():
    text = (
        "agentfile: 1\nagents:\n- slug: a\n  provider: p\n  model: m\n  tools:\n  - t\n"
    )

    assert render_agentfile(parse_agentfile(text)) == text


def test_an_empty_file_is_a_file():
    assert render_agentfile(AgentFile(agentfile=1)) == "agentfile: 1\n"


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text("ab:- #'", max_size=4), inner)
    ),
    max_leaves=8,
)


@given(plain)
def test_what_is_written_reads_the_same(value):
    text = yaml.dump({"a": value}, Dumper=JsonYamlDumper, allow_unicode=True)

    assert parse_within_limits(text) == {"a": value}
