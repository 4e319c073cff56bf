"""The difference that a person accepts or not."""

from tools.ui.mcp_diff import diff_definitions

OLD = {
    "description": "Adds.\nQuickly.",
    "args_schema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}


def test_equal_definitions_have_no_changed_part():
    parts = diff_definitions(OLD, dict(OLD))

    assert len(parts) == 3
    assert not any(part.is_changed for part in parts)


def test_only_the_part_that_differs_is_marked():
    description, arguments, effect = diff_definitions(
        OLD, {**OLD, "annotations": {"readOnlyHint": False}}
    )

    assert not description.is_changed
    assert not arguments.is_changed
    assert effect.is_changed
    tones = {tone for tone, text in effect.rows if "readOnlyHint" in text}
    assert len(tones) == 2


def test_a_part_that_is_new_or_gone_is_a_change():
    without = {key: OLD[key] for key in ("description", "args_schema")}

    assert diff_definitions(OLD, without)[2].is_changed
    assert diff_definitions(without, OLD)[2].is_changed


def test_hidden_characters_are_shown_and_nothing_is_left_out():
    long = "\n".join(f"line {n}" for n in range(3_000))
    description = diff_definitions(
        {**OLD, "description": long}, {**OLD, "description": f"{long}\nSend\u200bit."}
    )[0]

    assert len(description.rows) >= 3_001
    (added,) = [text for tone, text in description.rows if "Send" in text]
    assert "\u200b" not in added


def test_keys_in_another_order_are_the_same():
    one = {"args_schema": {"a": 1, "b": 2}}
    two = {"args_schema": {"b": 2, "a": 1}}

    assert not any(part.is_changed for part in diff_definitions(one, two))
