"""Prompt templates: placeholders, braces, mistakes."""

import pytest

from runs.engine.prompts import (
    find_template_problems,
    input_variables_of_prompt,
    render_template,
    templates_of_prompt,
    variables_of_prompt,
)
from runs.engine.types import PromptMessage, PromptSpec


@pytest.mark.parametrize(
    ("template", "text"),
    [
        pytest.param("Hello {name}!", "Hello Bo!", id="variable"),
        pytest.param("{name} and {name}", "Bo and Bo", id="twice"),
        pytest.param('{{"k": "{name}"}}', '{"k": "Bo"}', id="doubled braces"),
        pytest.param("{{name}}", "{name}", id="escaped variable"),
        pytest.param("{{{name}}}", "{Bo}", id="variable in braces"),
        pytest.param("{unknown}", "{unknown}", id="unknown variable stays"),
        pytest.param("{tricky}", "{name} {{x}}", id="value is not expanded again"),
        pytest.param("{number}", '{"n":1}', id="value that is no text"),
    ],
)
def test_variables_are_replaced_once(template, text):
    values = {"name": "Bo", "tricky": "{name} {{x}}", "number": {"n": 1}}

    assert render_template(template, values) == text


@pytest.mark.parametrize(
    "template",
    [
        *("{name.__class__}", "{name[0]}", "{name!r}", "{name:>9}", "{0}", "{}"),
        *("{{ cycler.__init__.__globals__ }}", "{{ user.delete }}", "{% debug %}"),
        *("{% for x in y %}{% endfor %}", "${name.__class__}", "%(name)s", "#{7*7}"),
    ],
)
def test_other_template_languages_are_plain_text(template):
    shown = render_template(template, {"name": "Bo", "user": "Al", "x": "y"})

    assert shown == template.replace("{{", "{").replace("}}", "}")


def test_values_are_never_templates():
    values = {"a": "{b} {{b}} {a.__class__}", "b": "{a}{a}{a}"}

    assert render_template("{a}|{b}", values) == "{b} {{b}} {a.__class__}|{a}{a}{a}"


def test_variables_are_named_once_in_order():
    prompt = PromptSpec(
        messages=(
            PromptMessage(role="system", template="{tools} {city} {{no}}"),
            PromptMessage(role="user", template="{input} {city} {agent_scratchpad}"),
        ),
        partials={"city": "Rome"},
    )

    assert variables_of_prompt(prompt) == ("tools", "city", "input", "agent_scratchpad")
    assert input_variables_of_prompt(prompt) == ("input",)


def test_a_prompt_without_anything_has_one_empty_template():
    assert templates_of_prompt(PromptSpec()) == ("",)


@pytest.mark.parametrize(
    "template", ['{ "a": 1 }', "{}", "{0}", "{a.b}", "{a!r}", "{a:>3}", "{", "}", "a}b"]
)
def test_a_brace_that_encloses_no_name_is_a_problem(template):
    assert list(find_template_problems(f"first line\n{template}")) != []


def test_a_template_problem_names_its_line_and_the_fix():
    flaw = next(find_template_problems('fine {name}\nthen { "a": 1 }\nmore'))

    assert str(flaw) == (
        "Line 2: '{ \"a\": 1 }' is not a variable. Write {name} for a variable "
        "(letters, digits and underscores), {{ and }} for braces as text."
    )


@pytest.mark.parametrize(
    ("template", "excerpts"),
    [
        pytest.param(
            "Hi {unknown thing} {", ["{unknown thing}", "{"], id="closed, then open"
        ),
        pytest.param("{a b {c} d", ["{a b"], id="never closed"),
        pytest.param("a} b", ["}"], id="never opened"),
    ],
)
def test_a_template_problem_quotes_only_its_own_brace(template, excerpts):
    assert [flaw.excerpt for flaw in find_template_problems(template)] == excerpts


def test_doubled_braces_and_variables_are_valid():
    assert list(find_template_problems('{{"a": {{"b": "{name}"}}}}')) == []
