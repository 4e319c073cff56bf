"""JSON as people read it."""

from tools.ui.colored_json import MAX_COLORED, render_colored_json


def test_names_texts_and_numbers_are_told_apart():
    shown = render_colored_json('{"a": "b", "n": [1, true], "q": "x: \\"y\\":"}')

    assert '<span class="k">&quot;a&quot;</span>' in shown
    assert '<span class="s">&quot;b&quot;</span>' in shown
    assert '<span class="n">true</span>' in shown
    assert shown.count('class="k"') == 3


def test_markup_stays_text():
    shown = render_colored_json('{"a": "<script>"}')

    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_other_text_and_long_json_have_no_colors():
    assert render_colored_json("{not json") == "{not json"
    assert "<span" not in render_colored_json(f'["{"x" * MAX_COLORED}"]')


def test_half_a_character_is_replaced():
    assert "\ud800" not in render_colored_json(r'{"\ud800": "\u0000"}')
