"""Schemas without references."""

from tools.schema.references import MAX_NODES, resolve_references


def test_a_reference_is_replaced_by_its_definition_and_keeps_what_stands_beside_it():
    schema = {
        "properties": {"a": {"$ref": "#/$defs/x~1y", "description": "here"}},
        "$defs": {"x/y": {"type": "string", "description": "there"}},
    }

    assert resolve_references(schema) == {
        "properties": {"a": {"type": "string", "description": "here"}}
    }


def test_a_definition_in_itself_and_an_unknown_one_stay():
    tree = {"properties": {"left": {"$ref": "#/$defs/tree"}}}
    schema = {
        "properties": {"a": {"$ref": "#/$defs/tree"}, "b": {"$ref": "#/$defs/none"}},
        "$defs": {"tree": tree},
    }

    assert resolve_references(schema)["properties"] == {
        "a": tree,
        "b": {"$ref": "#/$defs/none"},
    }


def test_definitions_that_double_each_other_end():
    names = [f"d{n}" for n in range(60)]
    defs = {
        name: {
            "properties": {
                "l": {"$ref": f"#/$defs/{after}"},
                "r": {"$ref": f"#/$defs/{after}"},
            }
        }
        for name, after in zip(names, names[1:], strict=False)
    }
    schema = {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs}

    assert str(resolve_references(schema)).count("properties") < MAX_NODES
