"""Page or part, by name; nothing inline; works without JavaScript."""

from pathlib import Path

import pytest

from tests.templates import faults

TEMPLATES = Path(__file__).parent.parent / "templates"


def test_the_templates_keep_the_rules():
    assert faults(TEMPLATES) == []


LOADS_GUARD = ("parts/_unsaved.html", "runs/unsaved.js", "{% submit_row %}")


def test_guarded_forms_load_the_script_that_guards_them():
    texts = {path: path.read_text() for path in TEMPLATES.rglob("*.html")}
    guarded = {path: text for path, text in texts.items() if "data-guard" in text}

    assert guarded
    assert not [
        str(path)
        for path, text in guarded.items()
        if not any(name in text for name in LOADS_GUARD)
    ]


def plant(root: Path, name: str, text: str) -> list[str]:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)
    return faults(root)


PAGE = '{% extends "base.html" %}\n'


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        pytest.param("runs/list.html", "<p>x</p>", "a page begins", id="bare-page"),
        pytest.param(
            "runs/_row.html", PAGE + '<tr id="run-row">', "extends nothing", id="part"
        ),
        pytest.param("runs/_row.html", "<tr>", 'no id="run-row"', id="no-id"),
        pytest.param(
            "runs/_row.html", '<p><b id="run-row">', 'no id="run-row"', id="inner-id"
        ),
        pytest.param(
            "runs/_row.html", '<tr id="run-rows">', 'no id="run-row"', id="other-id"
        ),
        pytest.param("runs/_row.html", "words", "an outermost tag", id="no-tag"),
        pytest.param(
            "runs/_row.html", "x" * 141, "more than 140 columns", id="too-long"
        ),
        pytest.param(
            "a.html", PAGE + "<script>x()</script>", "inline script", id="script"
        ),
        pytest.param("a.html", PAGE + '<p style="x">', "inline style", id="style"),
        pytest.param(
            "a.html", PAGE + '<p onclick="x()">', "event handler", id="handler"
        ),
        pytest.param("a.html", PAGE + "<!-- x -->", "HTML comment", id="comment"),
        pytest.param(
            "a.html", PAGE + '<link href="//cdn.x/a.css">', "foreign", id="cdn"
        ),
        pytest.param("a.html", PAGE + "{{ x|safe }}", "filter `safe`", id="safe"),
        pytest.param(
            "a.html", PAGE + '<div hx-post="/x/">', "hx-post is on <div>", id="post"
        ),
        pytest.param("a.html", PAGE + '<a hx-get="/x/">', "has no href", id="get"),
        pytest.param(
            "admin/a.html", "<style>p {}</style>", "style sheet", id="admin-inline"
        ),
    ],
)
def test_a_planted_fault_is_found(tmp_path, name, text, why):
    said = plant(tmp_path, name, text)

    assert any(why in sentence for sentence in said)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("runs/list.html", PAGE + "<p>x</p>", id="page"),
        pytest.param(
            "runs/_step.html",
            '{# why #}{% load x %}<li class="a" id="run-step-{{ step.pk }}">',
            id="keyed-part",
        ),
        pytest.param("parts/_pager.html", '<nav id="part-pager">', id="parts"),
        pytest.param("runs/_step_body.html", '<div id="run-step-body">', id="words"),
        pytest.param(
            "a.html", PAGE + '<script src="{% static "x.js" %}"></script>', id="src"
        ),
        pytest.param(
            "runs/_live.html", '<hx-partial hx-target="#x"></hx-partial>', id="live"
        ),
    ],
)
def test_a_rightful_template_passes(tmp_path, name, text):
    assert plant(tmp_path, name, text) == []
