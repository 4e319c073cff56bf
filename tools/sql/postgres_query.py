"""The text of a query for PostgreSQL: what it may call, and where its arguments go.

Texts, quoted names and comments are recognized as the server does it. What would need
more than that, such as texts with escapes of their own, is refused: what we took for a
text and the server did not could call anything.
"""

import re
from typing import Any

from tools.sql.rows import QueryFailed

NAMED_ARGUMENT = re.compile(r"(?<!:):([a-zA-Z_]\w*)")
LITERALS = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n\r]*|/\*.*?\*/", re.DOTALL
)

SIDE_EFFECT_FUNCTIONS = re.compile(
    r"\b(pg_(?:terminate|cancel)_backend|pg_(?:try_)?advisory_\w+|pg_notify|set_config"
    r"|pg_reload_conf|pg_(?:read|ls|stat|logdir)_\w*(?:file|dir)\w*|lo_\w+|dblink\w*"
    r"|pg_logical_\w+|pg_export_snapshot|pg_current_xact_id|txid_current"
    r"|(?:query|cursor|table|schema|database)_to_xml\w*|ts_stat|ts_rewrite"
    r"|crosstab\w*|connectby|xpath_table|pg_file_\w+|http_\w+)\"?\s*\(",
    re.IGNORECASE,
)
"""Functions that do more than read: to other sessions, files, servers, or by running
a text as a query."""

PLAIN_NAME = re.compile(r'"\w+"')
UNSUPPORTED_SYNTAX = (
    (re.compile(r'\bU&\s*"', re.I), 'names written as U&"…" are not taken'),
    (
        re.compile("(?<![A-Za-z_\x80-\U0010ffff])[eE]'"),
        "texts written as E'…' are not taken; use chr(10) and its like",
    ),
    (re.compile(r"\$"), "a $ is taken in texts and quoted names only"),
    (re.compile(r"/\*"), "a comment is not closed"),
)
"""What stands in a query without its texts and comments, and why it is refused."""


def refuse_unsafe_query(query: str) -> None:
    """Raise `QueryFailed` if a query leaves its brackets or its transaction.

    Reading alone does not stop a role from ending its other sessions, from holding
    locks, or from opening connections through an extension.
    """
    bare = LITERALS.sub(replace_literal, query)
    for odd, why in UNSUPPORTED_SYNTAX:
        if odd.search(bare):
            raise QueryFailed(why)
    if bare.count("'") % 2 or bare.count('"') % 2:
        raise QueryFailed("a quote is not closed")
    if has_unbalanced_brackets(bare):
        raise QueryFailed("a bracket is closed that was not opened")
    if found := SIDE_EFFECT_FUNCTIONS.search(bare):
        raise QueryFailed(f"the function {found[1].lower()} is not allowed here")


def replace_literal(found: re.Match[str]) -> str:
    """Return what stands for a text, name or comment: nothing a name could hide in."""
    text = found[0]
    if text[0] == "'":
        return "''"
    if text[0] == '"':
        return text if PLAIN_NAME.fullmatch(text) else '"_"'
    if "/*" in text[2:]:
        raise QueryFailed("comments within comments are not taken")
    return " "


def has_unbalanced_brackets(bare: str) -> bool:
    """Whether a bracket is closed before one is opened, or left open."""
    depth = 0
    for character in bare:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            return True
    return depth > 0


def find_argument_names(query: str) -> set[str]:
    return set(NAMED_ARGUMENT.findall(LITERALS.sub("", query)))


def convert_parameters(query: str, values: dict[str, Any]) -> str:
    """Return the query with `:name` as the driver writes it; `::type` stays."""
    query = query.strip().rstrip(";").replace("%", "%%")
    parts: list[str] = []
    at = 0
    for match in LITERALS.finditer(query):
        parts += [convert_named_parameter(query[at : match.start()], values), match[0]]
        at = match.end()
    return "".join([*parts, convert_named_parameter(query[at:], values)])


def convert_named_parameter(piece: str, values: dict[str, Any]) -> str:
    """Replace `:name` by a parameter; raise `QueryFailed` for an unknown name."""

    def parameter(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise QueryFailed(f"there is no argument for :{match[1]}")
        return f"%({match[1]})s"

    return NAMED_ARGUMENT.sub(parameter, piece)
