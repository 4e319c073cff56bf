"""Files as tables of examples: formats, and what is wrong with a file."""

import json

import pytest

from runs.services.datasets import file_table
from runs.services.datasets.parse_file import parse_dataset_file
from runs.services.errors import DatasetFileRefused


def parsed(text: str, name: str = "a.csv") -> tuple[str, list[dict[str, str]]]:
    found = parse_dataset_file(name, text.encode())
    rows = [dict(zip(found.table.columns, r, strict=True)) for r in found.table.rows]
    return found.file_format, rows


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_reads_csv_with_any_common_separator(separator):
    text = 'q,"a, b"\n"x\ny","say ""hi"""\n\nlast,\n'.replace(",", separator)

    assert parsed(text.replace(f"a{separator} b", "a b")) == (
        "csv",
        [{"q": "x\ny", "a b": 'say "hi"'}, {"q": "last", "a b": ""}],
    )


def test_lines_are_counted_as_an_editor_does():
    table = parse_dataset_file("a.csv", b'q,a\n"x\ny",1\n\nz,2\n').table

    assert table.lines == (2, 5)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("q\n问题\n".encode("utf-8-sig"), id="utf-8 with a mark"),
        pytest.param("q\r\n问题\r\n".encode("utf-16"), id="utf-16 of Excel"),
    ],
)
def test_reads_the_encodings_of_spreadsheets(content):
    assert parse_dataset_file("a.csv", content).table.rows == (("问题",),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "The file is empty", id="empty"),
        pytest.param("q,a\n", "no rows", id="only headings"),
        pytest.param(
            "q,a,q\n1,2,3\n", "Columns 1 and 3 are both called “q”", id="twice"
        ),
        pytest.param("q,,a\n1,2,3\n", "Column 2 has no name", id="no name"),
        pytest.param("q,a\n1,2\n1,2,3\n", "Line 3 has 3 cells", id="more cells"),
        pytest.param('q,a\n1,"2\n', "Line 2: the quotation mark", id="open quote"),
        pytest.param('q\n"a"b\n', "Line 2: text follows a closing", id="after a quote"),
        pytest.param(
            f"q\n{'x' * 100_001}\n",
            "Line 2, column “q”: the text has 100,001",
            id="cell",
        ),
    ],
)
def test_says_what_is_wrong_with_a_csv_file(text, message):
    with pytest.raises(DatasetFileRefused, match=message):
        parsed(text)


def test_a_cell_of_ten_megabytes_is_refused_with_its_place():
    with pytest.raises(DatasetFileRefused, match="Line 2, column “q”"):
        parsed("q\n" + "x" * 10_000_000)


def test_a_hundred_thousand_rows_are_refused():
    with pytest.raises(DatasetFileRefused, match="more than 10,000 rows"):
        parsed("q\n" + "x\n" * 100_000)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"q\n\xff\xfe\xfd", id="bytes"),
        pytest.param("q,a\nx,y\n".encode("utf-16-le"), id="utf-16 without a mark"),
    ],
)
def test_a_file_that_is_no_text_is_refused(content):
    with pytest.raises(DatasetFileRefused, match="not UTF-8 text"):
        parse_dataset_file("a.csv", content)


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;"])
def test_a_declared_separator_is_not_the_heading(first):
    table = parse_dataset_file("a.csv", f"{first}\r\nq;a\r\nx,1;y\r\n".encode()).table

    assert (table.columns, table.rows) == (("q", "a"), (("x,1", "y"),))
    assert table.lines == (3,)


def test_a_file_that_is_too_large_is_not_read():
    size = file_table.MAX_FILE_BYTES + 1

    with pytest.raises(DatasetFileRefused, match="at most 20 MB"):
        parse_dataset_file("a.csv", b"x" * size)


def test_reads_json_lines_with_different_keys():
    text = '{"q": "a", "n": 1}\n\n{"q": "b", "calls": ["x"], "n": null}\n'

    assert parsed(text, "a.jsonl") == (
        "jsonl",
        [
            {"q": "a", "n": "1", "calls": ""},
            {"q": "b", "n": "", "calls": '["x"]'},
        ],
    )


def test_reads_a_json_list():
    assert parsed('[{"q": "a"},\n{"q": "b"}]', "a.json")[1] == [{"q": "a"}, {"q": "b"}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param('{"q": 1}\n{"q": }\n', "Line 2: a value is missing", id="syntax"),
        pytest.param('{"q": 1}\n[1]\n', "Line 2: it is not a JSON object", id="list"),
        pytest.param('{"q": NaN}\n', "Line 1: a value cannot be stored", id="NaN"),
        pytest.param("[1]", "items that are not JSON objects", id="numbers"),
        pytest.param(
            '{"q": 1}\n{"q": 2, "q": 3}\n', "Line 2: “q” occurs twice", id="twice"
        ),
        pytest.param('{"q": 1, " q": 2}', "Line 1: “q” occurs twice", id="space"),
        pytest.param(
            '[{"q": 1}, {"q": 2, "q": 3}]', "“q” occurs twice", id="in a list"
        ),
    ],
)
def test_says_what_is_wrong_with_a_json_file(text, message):
    with pytest.raises(DatasetFileRefused, match=message):
        parsed(text, "a.jsonl")


def test_reads_samples_of_openai_evals():
    samples = [
        {
            "input": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "2 + 2?"},
            ],
            "ideal": ["4", "four"],
        },
        {
            "input": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "Hello"},
                {"role": "user", "content": "Bye"},
            ],
            "ideal": "Bye!",
        },
    ]
    text = "\n".join(map(json.dumps, samples))

    assert parsed(text, "evals.jsonl") == (
        "evals",
        [
            {"system": "Be brief.", "input": "2 + 2?", "ideal": "4\nfour"},
            {
                "system": "",
                "input": "user: Hi\nassistant: Hello\nuser: Bye",
                "ideal": "Bye!",
            },
        ],
    )


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("2 + 2?", id="text"),
        pytest.param([{"role": "user", "content": "2 + 2?"}], id="messages"),
    ],
)
def test_each_ideal_answer_of_openai_evals_becomes_a_line(question):
    samples = [
        {"input": question, "ideal": "4"},
        {"input": question, "ideal": ["4", "four\nor so"]},
    ]

    found = parsed("\n".join(map(json.dumps, samples)), "evals.jsonl")

    assert found == (
        "evals",
        [
            {"input": "2 + 2?", "ideal": "4"},
            {"input": "2 + 2?", "ideal": "4\nfour or so"},
        ],
    )


PROMPTFOO = """
prompts: ["Translate {{text}}"]
defaultTest:
  vars: {tone: polite}
tests:
  - description: greeting
    vars:
      text: [Hello, Bye]
    assert:
      - {type: equals, value: Bonjour}
      - {type: contains, value: Bon}
  - vars: {text: Thanks, tone: rude}
"""


def test_reads_the_tests_of_promptfoo():
    assert parsed(PROMPTFOO, "promptfooconfig.yaml") == (
        "promptfoo",
        [
            {
                "tone": "polite",
                "text": text,
                "description": "greeting",
                "expected": "Bonjour",
                "assert contains": "Bon",
            }
            for text in ("Hello", "Bye")
        ]
        + [
            {
                "tone": "rude",
                "text": "Thanks",
                "description": "",
                "expected": "",
                "assert contains": "",
            }
        ],
    )


SHARED_ASSERTIONS = """
defaultTest:
  assert:
    - {type: equals, value: fine}
    - {type: not-contains, value: sorry}
tests:
  - vars: {q: a}
  - vars: {q: b}
    assert:
      - {type: not-contains, value: no}
  - vars: {q: c}
    options: {disableDefaultAsserts: true}
"""


def test_each_test_of_promptfoo_has_the_assertions_that_all_share():
    _, rows = parsed(SHARED_ASSERTIONS, "promptfooconfig.yaml")

    assert rows == [
        {"q": "a", "expected": "fine", "assert not-contains": "sorry"},
        {"q": "b", "expected": "fine", "assert not-contains": "sorry\nno"},
        {"q": "c", "expected": "", "assert not-contains": ""},
    ]


def test_shared_parts_are_not_repeated_without_a_limit():
    shared = {"assert": [{"type": "contains", "value": "x" * 90_000}]}
    tests = [{"vars": {"q": list(range(1_000))}}]
    text = json.dumps({"defaultTest": shared, "tests": tests})

    with pytest.raises(DatasetFileRefused, match="more than 50,000,000 characters"):
        parsed(text, "a.yaml")


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "tests: file://b.csv", "in another file, “file://b.csv”", id="file"
        ),
        pytest.param("prompts: [a]", "no list under “tests”", id="no tests"),
        pytest.param("tests: [1]", "Test 1 is not an object", id="number"),
        pytest.param("tests: [", "The YAML cannot be read, line 1", id="syntax"),
        pytest.param(
            "tests: !!python/object/apply:os.system [ls]", "the type", id="python"
        ),
        pytest.param(f"{BOMB}tests: []", "more than 200,000 values", id="aliases"),
        pytest.param(
            f"{BOMB.replace('x', '[]')}tests: []",
            "more than 200,000 values",
            id="aliases of empty lists",
        ),
        pytest.param(
            f"{BOMB.replace('x', 'null')}tests: []",
            "more than 200,000 values",
            id="aliases of nothing",
        ),
        pytest.param(
            "tests: &a\n  - vars: {input: *a}\n",
            "more than 200,000 values",
            id="a list in itself",
        ),
        pytest.param(
            "a: &a {b: *a}\ntests: []",
            "more than 200,000 values",
            id="object in itself",
        ),
        pytest.param("tests: [{vars: {a: 1, a: 2}}]", "'a' occurs twice", id="twice"),
        pytest.param(
            "tests: [{description: x, vars: {description: y}}]",
            "Test 1: “description” occurs twice",
            id="variable and column",
        ),
    ],
)
def test_says_what_is_wrong_with_a_yaml_file(text, message):
    with pytest.raises(DatasetFileRefused, match=message):
        parsed(text, "a.yaml")


def test_many_combinations_are_refused():
    values = json.dumps(list(range(200)))

    with pytest.raises(DatasetFileRefused, match="more than 10,000 rows"):
        parsed(f"tests: [{{vars: {{a: {values}, b: {values}}}}}]", "a.yaml")


ASSERTIONS = """
tests:
  - vars: {q: a}
    assert:
      - {type: is-json}
      - {type: latency, threshold: 500}
      - type: assert-set
        threshold: 0.5
        assert: [{type: equals, value: x}, {type: is-json}]
      - {$ref: "#/assertionTemplates/kind"}
"""


def test_no_assertion_of_promptfoo_is_lost():
    _, [row] = parsed(ASSERTIONS, "a.yaml")

    assert row == {
        "q": "a",
        "assert is-json": "true",
        "assert latency": '{"threshold": 500}',
        "assert assert-set": json.dumps(
            {
                "threshold": 0.5,
                "assert": [{"type": "equals", "value": "x"}, {"type": "is-json"}],
            }
        ),
        "assert": '{"$ref": "#/assertionTemplates/kind"}',
    }


MERGED = """
shared: &shared {city: Oslo, tone: polite}
other: &other {tone: rude, day: today}
tests:
  - vars: {<<: *shared, q: a}
  - vars: {q: b, city: Rome, <<: [*shared, *other]}
  - &test {description: last, vars: {q: c}}
  - {<<: *test, description: again}
"""


def test_merge_keys_of_promptfoo_are_followed():
    _, rows = parsed(MERGED, "a.yaml")

    found = [{name: text for name, text in row.items() if text} for row in rows]
    assert found == [
        {"q": "a", "city": "Oslo", "tone": "polite"},
        {"q": "b", "city": "Rome", "tone": "polite", "day": "today"},
        {"q": "c", "description": "last"},
        {"q": "c", "description": "again"},
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "- {vars: {q: [a, 'file://q.txt']}}",
            "“q” is in another file, “file://q.txt”",
        ),
        ("- {vars: 'file://v.yaml'}", "“vars” is in another file"),
        ("- {vars: {q: a}}\n- file://more.yaml", "another file, “file://more.yaml”"),
        (
            "- vars: {q: a}\n  assert: [{type: equals, value: 'file://a.txt'}]",
            "“expected” is in another file",
        ),
        (
            "defaultTest: file://d.yaml\ntests: [{vars: {q: a}}]",
            "“defaultTest” is in another file",
        ),
        ("- {vars: {<<: x, q: a}}", "does not name an object"),
    ],
)
def test_parts_of_promptfoo_in_other_files_are_refused(text, message):
    with pytest.raises(DatasetFileRefused, match=message):
        parsed(text, "a.yaml")


@pytest.mark.parametrize("text", ['{\n  "q": "a"\n}\n', '\n{"q": "a"}'])
def test_a_json_file_may_be_one_object(text):
    assert parsed(text, "a.json") == ("jsonl", [{"q": "a"}])


def test_a_mistake_in_an_object_of_several_lines_has_its_line():
    with pytest.raises(DatasetFileRefused, match="Line 3"):
        parsed('{\n  "q": "a",\n  b: 1\n}', "a.json")


def test_text_parts_of_openai_messages_are_joined():
    text = {"type": "text", "text": "Hello"}
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    samples = [
        {"input": [{"role": "user", "content": parts}], "ideal": "Hi"}
        for parts in ([text, {"type": "text", "text": "you"}], [text, image])
    ]

    _, rows = parsed("\n".join(map(json.dumps, samples)), "a.jsonl")

    assert [row["input"] for row in rows] == ["Hello\nyou", json.dumps([text, image])]
