"""Our figures are those of inspect-ai, agentevals, rouge-score and nltk."""

import json
import os
import random
import subprocess
from pathlib import Path

import pytest

from runs.evaluation.statistics import compute_agreement
from tests.evaluation.make import make_expected, make_record, make_step, score
from tests.support.servers import find_server_program

pytestmark = pytest.mark.slow

CASES = 30
"""Of each scorer."""

WORDS = [
    "Paris",
    "the",
    "a",
    "an",
    "Rome",
    "new",
    "York,",
    "blue-green",
    "sky.",
    "sees.",
    "3.14",
    "5",
    "5.0",
    "1,000",
    "No!",
]
PLAIN = ["paris", "rome", "new", "york", "blue", "one", "ONE", "naïve", "巴黎", "👍"]
TOOLS = [("find", {"q": "a"}), ("find", {"q": "b"}), ("send", {"to": ["ann"], "n": 1})]
MODES = ("strict", "unordered", "subset", "superset")


def write_text(draw, words, most=6):
    return " ".join(draw.choices(words, k=draw.randint(1, most)))


def mangle(draw, text):
    """Return `text` with other case, other ends, or other words around it."""
    text = draw.choice((text, text.upper(), text.title(), f"{text}.", f"  {text}! "))
    return draw.choice((text, text, f"well {text}", f"{text} indeed"))


def build_text_cases(draw):
    """Yield (a case for others, our score of the same)."""
    target = write_text(draw, PLAIN, 2)
    said = mangle(draw, draw.choice((target, write_text(draw, PLAIN, 3))))
    ends = {"whole": "exact", "start": "begin", "end": "end"}
    for place, location in ends.items():
        ours = score("exact", said, target, place=place, ignore_punctuation=True)
        yield ["inspect_match", said, target, {"location": location}], ours.value
    ours = score("exact", said, target, ignore_case=True, ignore_punctuation=True)
    yield ["inspect_exact", said, target], ours.value
    for ignore in (True, False):
        options = {"ignore_case": ignore, "ignore_space": False}
        ours = score("contains", said, texts=[target], **options)
        yield ["inspect_includes", said, target, ignore], ours.value
    several = [target, write_text(draw, PLAIN, 1), write_text(draw, PLAIN, 2)]
    options = {"alternatives": True, "ignore_punctuation": True}
    ours = score("exact", said, "\n".join(several), **options)
    yield ["inspect_match", said, several, {"location": "exact"}], ours.value
    options = {"alternatives": True, "needs": "any", "ignore_space": False}
    ours = score("contains", said, "\n".join(several), **options)
    yield ["inspect_includes", said, several, True], ours.value
    word = target.split()[0]
    ours = score("regex", said, pattern=rf"\b{word}\b", ignore_case=True)
    if word.isalpha():
        yield ["inspect_pattern", said, word, rf"\b{word}\b"], ours.value
    long, other = write_text(draw, WORDS, 12), write_text(draw, WORDS, 12)
    similarity = score("similarity", long, other)
    if not similarity.problem:
        yield ["inspect_f1", long, other], similarity.value
    ascii_only = score("similarity", long, other, method="rouge_l")
    yield ["rouge", long, other], ascii_only.value


def build_answer_cases(draw):
    letter, said = draw.choice("ABCD"), draw.choice("ABCD")
    text = f"Hm: A or B.\nANSWER: {draw.choice('ABCD')}\n\nAnswer: {said}"
    ours = score("one-of", text, letter, label="answer:", choices=list("ABCD"))
    yield ["inspect_answer", text, letter, "letter"], ours.value
    letter, said = draw.choice("ABC"), draw.choice("ABCabcE")
    ends = (f"ANSWER: {said}", f"ANSWER: {said}.", f"Answer: {said}\n", said)
    text = f"Either A or B.\n{draw.choice(ends)}"
    options = {"ignore_case": True, "ignore_punctuation": True}
    ours = score(
        "one-of", text, letter, label="answer:", choices=list("ABC"), **options
    )
    yield ["inspect_choice", text, letter, ["Oslo", "Rome", "Paris"]], ours.value
    target = write_text(draw, PLAIN, 2)
    line = draw.choice((target, write_text(draw, PLAIN, 2)))
    text = f"Because.\nANSWER: {line}"
    ours = score("exact", text, target, label="ANSWER:", line="first")
    yield ["inspect_answer", text, target, "line"], ours.value


def build_number_cases(draw):
    number = draw.choice((7, -7, 0.5, 1000, 12.25, 3))
    said = " ".join(
        draw.choice(
            (f"{one:,}", f"{one}", f"{one}.", f"({one})", "and", "$" + str(one))
        )
        for one in draw.choices((7, -7, 0.5, 1000, 12.25, 3), k=4)
    )
    for which, location in (("first", "begin"), ("last", "end")):
        ours = score("number", said, str(number), which=which)
        options = {"location": location, "numeric": True}
        yield ["inspect_match", said, str(number), options], ours.value


def build_trajectory_cases(draw):
    expected = draw.choices(TOOLS, k=draw.randint(0, 3))
    made = list(expected) if draw.random() < 0.6 else draw.choices(TOOLS, k=2)
    if draw.random() < 0.4:
        draw.shuffle(made)
    if draw.random() < 0.3:
        made.append(draw.choice(TOOLS))
    for mode in MODES:
        for theirs, arguments in (("exact", "exact"), ("ignore", "ignored")):
            ours = score(
                "tool-calls",
                "",
                record=make_record(*(make_step(*call) for call in made)),
                example=make_expected(*expected),
                match=mode,
                arguments=arguments,
            )
            yield ["trajectory", made, expected, mode, theirs], ours.value


def build_kappa_cases(draw):
    labels = draw.choice(("pf", "12345"))
    one = draw.choices(labels, k=draw.randint(4, 30))
    other = [draw.choice((label, draw.choice(labels))) for label in one]
    found = compute_agreement(one, other)
    if found.kappa is not None:
        yield ["kappa", one, other], found.kappa


@pytest.fixture(scope="module")
def compared():
    """Pair each case with the score of others and ours; one process asks them all."""
    draw = random.Random(11)
    builders = (
        build_text_cases,
        build_answer_cases,
        build_number_cases,
        build_trajectory_cases,
        build_kappa_cases,
    )
    cases = [case for _ in range(CASES) for build in builders for case in build(draw)]
    done = subprocess.run(
        [find_server_program("python"), Path(__file__).with_name("others.py")],
        input=json.dumps([case for case, _ in cases]),
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    results = json.loads(done.stdout)
    return [
        (case, theirs, ours)
        for (case, ours), theirs in zip(cases, results, strict=True)
    ]


@pytest.mark.parametrize(
    "name",
    [
        "inspect_match",
        "inspect_includes",
        "inspect_pattern",
        "inspect_answer",
        "inspect_choice",
        "inspect_exact",
        "inspect_f1",
        "rouge",
        "trajectory",
        "kappa",
    ],
)
def test_scores_are_those_of_others(compared, name):
    mine = [one for one in compared if one[0][0] == name]
    scores = {theirs for _, theirs, _ in mine}

    assert len(mine) >= CASES / 2
    assert len(scores) > 1, "the cases do not tell anything"
    for case, theirs, ours in mine:
        off = 0.0051 if name == "inspect_f1" else 1e-9  # it has two decimals
        assert ours == pytest.approx(theirs, abs=off), case
