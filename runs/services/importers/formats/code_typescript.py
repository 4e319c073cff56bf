"""TypeScript source code: the calls that constants are assigned.

Only literals, names and calls are understood, which is what exported code has in
its definitions; any other value is None.
"""

import re
from typing import Any

from runs.services.importers.formats.code_values import MAX_CALLS, Call, Name, Template

ASSIGNMENT = re.compile(
    r"^[ \t]*(?:export\s+)?(?:const|let|var)\s+([A-Za-z_$][\w$]*)"
    r"\s*(?::[^=\n]{1,100})?=\s*",
    re.MULTILINE,
)
SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)+", re.DOTALL)
NUMBER = re.compile(r"-?\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
PATH = re.compile(r"(?:new\s+)?[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$][\w$]*)*")
KEY = re.compile(r"[A-Za-z_$][\w$]*|\d+")
WORDS = {"true": True, "false": False, "null": None, "undefined": None}
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": ""}
ESCAPE = re.compile(
    r"\\(u\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r\n|.)", re.DOTALL
)
CAST = re.compile(r"\s+as\s+[\w.<>\[\]]+|!")
FALLBACK = re.compile(r"\s*(\|\||\?\?)\s*")
MAX_DEPTH = 40


def parse_typescript_calls(text: str) -> dict[str, Call]:
    """Return each call by the constant that is assigned; nothing is run."""
    functions = find_instruction_functions(text)
    found: dict[str, Call] = {}
    for match in ASSIGNMENT.finditer(text):
        value = Reader(text, match.end()).read_value()
        if isinstance(value, Call):
            found[match[1]] = resolve_instructions(value, functions)
        if len(found) >= MAX_CALLS:
            break
    return found


def resolve_instructions(call: Call, functions: dict[str, Template]) -> Call:
    """Return the call with the text of the function that its instructions name."""
    value = call.arguments.get("instructions")
    if isinstance(value, Name) and value.path in functions:
        arguments = {**call.arguments, "instructions": functions[value.path]}
        return Call(call.function, arguments, call.positional)
    return call


ARROW = re.compile(r"\([^()]*\)\s*(?::\s*\w+\s*)?=>\s*\{")
RETURN = re.compile(r"\breturn\s+(?=`)")
FUNCTION_WINDOW = 5_000
"""Characters of a function before the text that it returns."""


def find_instruction_functions(text: str) -> dict[str, Template]:
    """Return functions that return one template literal, by name."""
    found: dict[str, Template] = {}
    for match in ASSIGNMENT.finditer(text):
        if not ARROW.match(text, match.end()):
            continue
        returned = RETURN.search(text, match.end(), match.end() + FUNCTION_WINDOW)
        if returned:
            value = Reader(text, returned.end()).read_value()
            if isinstance(value, Template):
                found[match[1]] = value
            elif isinstance(value, str):
                found[match[1]] = Template((value,))
    return found


class NotUnderstood(Exception):
    """The code has something else here."""


class Reader:
    """Reads one value from a place in the text."""

    def __init__(self, text: str, place: int) -> None:
        self.text = text
        self.place = place
        self.depth = 0

    def read_value(self) -> Any:
        """Return the value, or None if it is not understood."""
        try:
            return self._read()
        except NotUnderstood:
            return None

    def _read(self) -> Any:
        self._skip_space()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise NotUnderstood
        letter = self.text[self.place : self.place + 1]
        try:
            if letter in ("'", '"'):
                return self._read_text(letter)
            if letter == "`":
                return self._read_template()
            if letter == "[":
                return self._read_items("]")
            if letter == "{":
                return self._read_object()
            if match := NUMBER.match(self.text, self.place):
                self.place = match.end()
                return float(match[0].replace("_", ""))
            return self._read_path()
        finally:
            self.depth -= 1

    def _skip_space(self) -> None:
        if match := SPACE.match(self.text, self.place):
            self.place = match.end()

    def _accept(self, letter: str) -> bool:
        self._skip_space()
        if self.text.startswith(letter, self.place):
            self.place += len(letter)
            return True
        return False

    def _read_text(self, quote: str) -> str:
        end = self._find_end(quote)
        raw, self.place = self.text[self.place + 1 : end], end + 1
        return unescape_literal(raw)

    def _find_end(self, quote: str) -> int:
        """Return the place of the quote that ends the text here."""
        place = self.place + 1
        while place < len(self.text):
            letter = self.text[place]
            if letter == quote:
                return place
            place += 2 if letter == "\\" else 1
        raise NotUnderstood

    def _read_template(self) -> str | Template:
        parts: list[str | Name] = []
        self.place += 1
        start = self.place
        while self.place < len(self.text):
            letter = self.text[self.place]
            if letter == "`":
                parts.append(unescape_literal(self.text[start : self.place]))
                self.place += 1
                is_plain = len(parts) == 1 and isinstance(parts[0], str)
                return str(parts[0]) if is_plain else Template(tuple(parts))
            if self.text.startswith("${", self.place):
                parts.append(unescape_literal(self.text[start : self.place]))
                end = self.text.find("}", self.place)
                if end < 0:
                    raise NotUnderstood
                parts.append(Name(self.text[self.place + 2 : end].strip()[:200]))
                self.place = start = end + 1
                continue
            self.place += 2 if letter == "\\" else 1
        raise NotUnderstood

    def _read_items(self, end: str) -> list[Any]:
        """Return the values up to `end`, which stands after the opening bracket."""
        self.place += 1
        items: list[Any] = []
        while not self._accept(end):
            items.append(self._read())
            if not self._accept(",") and not self._accept(end):
                raise NotUnderstood
            if self.text[self.place - 1] == end:
                break
        return items

    def _read_object(self) -> dict[str, Any]:
        self.place += 1
        found: dict[str, Any] = {}
        while not self._accept("}"):
            key = self._read_key()
            found[key] = self._read() if self._accept(":") else Name(key)
            if not self._accept(","):
                if self._accept("}"):
                    break
                raise NotUnderstood
        return found

    def _read_key(self) -> str:
        self._skip_space()
        letter = self.text[self.place : self.place + 1]
        if letter in ("'", '"'):
            return self._read_text(letter)
        match = KEY.match(self.text, self.place)
        if match is None:
            raise NotUnderstood
        self.place = match.end()
        return match[0]

    def _read_path(self) -> Any:
        match = PATH.match(self.text, self.place)
        if match is None:
            raise NotUnderstood
        self.place = match.end()
        path = re.sub(r"^new\s+", "new ", match[0])
        value: Any = WORDS[path] if path in WORDS else Name(path)
        if self.text.startswith("(", self.place):
            value = self._build_call(path, self._read_items(")"))
            while self.text.startswith(".", self.place):  # z.object({}).optional()
                self.place += 1
                inner = self._read_path()
                if not isinstance(inner, Call | Name):
                    raise NotUnderstood
        self._skip_cast()
        return value

    def _skip_cast(self) -> None:
        """Skip a fallback or a cast, as in `process.env.MODEL || "gpt"`, `x as any`."""
        if match := CAST.match(self.text, self.place):
            self.place = match.end()
        if match := FALLBACK.match(self.text, self.place):
            self.place = match.end()
            self._read()

    def _build_call(self, path: str, items: list[Any]) -> Call:
        first = items[0] if items and isinstance(items[0], dict) else {}
        return Call(path, first, tuple(items))


def unescape_literal(raw: str) -> str:
    """Return the text of a literal without its backslashes."""

    def replace(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in "ux" and len(code) > 1:
            number = int(code.strip("ux{}"), 16)
            is_text = number < 0x110000 and not 0xD800 <= number < 0xE000 and number
            return chr(number) if is_text else ""
        return ESCAPES.get(code, "" if code in ("\n", "\r\n") else code)

    return ESCAPE.sub(replace, raw)
