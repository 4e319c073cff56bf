"""A run as a file."""

import json
import re
from html.parser import HTMLParser

import pytest

from tests.make import make_call, make_run, make_step, make_user

pytestmark = pytest.mark.django_db
KEY = "sk-abcdefghijklmnop1234"


@pytest.fixture
def ann(client):
    """Someone who is signed in."""
    user = make_user("ann", email="ann@example.com")
    client.force_login(user)
    return user


def some_run(owner):
    run = make_run(
        owner,
        status="succeeded",
        output=f"# Done {KEY}",
        inputs={"input": "Go </style><script>1</script>"},
        title="Go </style><script>1</script>",
    )
    make_call(run)
    make_step(run, tool_input={"q": KEY}, observation="</pre><script>2</script>")
    make_call(run, reply={"text": f"Done {KEY}"})
    return run


def exported(client, run, form) -> str:
    return client.get(f"/runs/{run.pk}/export/{form}/").content.decode()


class Loads(HTMLParser):
    """Collects what a browser would run or ask a server for."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        if tag in {"script", "img", "iframe", "link", "base", "form", "object"}:
            self.found.append(tag)
        self.found += [f"{tag} {name}" for name in names if name.startswith("on")]
        self.found += [f"{tag} src" for name in names if name in {"src", "srcset"}]


def test_the_page_needs_nothing_but_itself(client, ann):
    text = exported(client, some_run(ann), "html")
    loads = Loads()
    loads.feed(text)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]

    assert loads.found == []
    assert "@import" not in style
    assert set(re.findall(r"url\(([^)]*)\)", style)) <= {"#hatch"}
    assert "--canvas" in style
    assert "default-src &#x27;none&#x27;" in text or "default-src 'none'" in text


def test_the_page_has_every_step_escaped_and_without_secrets(client, ann):
    text = exported(client, some_run(ann), "html")

    assert [f'id="step-{n}"' in text for n in (1, 2, 3, 4)] == [True, True, True, False]
    assert "&lt;/pre&gt;&lt;script&gt;2" in text
    assert "<script" not in text
    assert KEY not in text
    assert "ann@example.com" not in text


def test_the_files_are_downloads(client, ann):
    run = some_run(ann)
    for form, kind in (("html", "text/html"), ("json", "application/json")):
        answer = client.get(f"/runs/{run.pk}/export/{form}/")

        assert answer["Content-Type"].startswith(kind)
        assert f'filename="run-{run.pk}.{form}"' in answer["Content-Disposition"]


def test_the_json_has_calls_and_steps_without_secrets(client, ann):
    run = some_run(ann)
    shape = json.loads(exported(client, run, "json"))

    assert shape["format"] == "agentsite-run/1"
    assert shape["run"]["id"] == run.pk
    assert [call["number"] for call in shape["model_calls"]] == [0, 1]
    assert shape["steps"][0]["observation"] == "</pre><script>2</script>"
    assert shape["fork"] is None
    assert KEY not in json.dumps(shape)


@pytest.mark.parametrize("form", ["html", "json"])
def test_hides_what_is_someone_elses(client, ann, form):
    run = some_run(make_user("bob"))

    assert client.get(f"/runs/{run.pk}/export/{form}/").status_code == 404


def test_a_secret_at_the_edge_of_a_long_text_leaves_no_half(client, ann):
    run = make_run(ann, status="succeeded")
    make_step(run, observation="a" * 39_990 + f" {KEY} " + "b" * 9_000, elapsed=0.1)

    assert "sk-abc" not in exported(client, run, "html")
