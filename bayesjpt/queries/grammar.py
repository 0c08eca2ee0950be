"""The language of events as text: its grammar, read by lark, and what a mistake in it is answered with."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, NoReturn

from bayesjpt.defaults import MAX_EVENT_DEPTH
from bayesjpt.errors import QueryError
from bayesjpt.queries.column import Col, as_value
from bayesjpt.queries.event import (
    BARE_NAME,
    FLIPPED,
    INCLUSIVE,
    KEYWORDS,
    Between,
    Comparison,
    Event,
    EventError,
    Leaf,
    Place,
    TwoColumnsError,
    Value,
    all_of,
    any_of,
    membership,
    none_of,
    rendered_name,
    rendered_value,
)
from bayesjpt.queries.resolve import NO_TEST_FOR_MISSING, refuse_two_columns

if TYPE_CHECKING:
    from lark import Lark, Token, Tree
    from lark.exceptions import UnexpectedToken

    from bayesjpt.table.schema import Schema

GRAMMAR = rf"""
?start: either
?either: both (_OR both)*
?both: single (_AND single)*
?single: negation | "(" either ")" | chain | range | set
negation: NOT single
chain: _operand (COMPARE _operand)+
range: _column NOT? _BETWEEN _value _AND _value
set: _column NOT? _IN "(" (_value ("," _value)*)? ")"
_operand: _column | _value
_column: NAME | QUOTED
_value: NUMBER | TEXT | TRUE | FALSE

COMPARE: "<=" | ">=" | "<>" | "!=" | "==" | "=" | "<" | ">"
NOT.2: /not(?![\w.])|!(?!=)|~/i
_AND.2: /and(?![\w.])|&&?/i
_OR.2: /or(?![\w.])|\|\|?/i
_BETWEEN.2: /between(?![\w.])/i
_IN.2: /in(?![\w.])/i
TRUE.2: /true(?![\w.])/i
FALSE.2: /false(?![\w.])/i
NUMBER.2: /[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity|nan)(?![\w.])/i
NAME: /{BARE_NAME}/
QUOTED: /`([^`]|``)*`/ | /"([^"]|"")*"/
TEXT: /'([^']|'')*'/
%ignore /\s+/
"""

_WORDS = {
    "NAME": "a column",
    "NUMBER": "a value",
    "COMPARE": "a comparison (<, <=, =, !=, >=, >)",
    "_BETWEEN": "'between'",
    "_IN": "'in'",
    "LPAR": "'('",
    "RPAR": "')'",
    "COMMA": "','",
    "_AND": "'and'",
    "_OR": "'or'",
    "$END": "the end",
}
"""What the tokens that may come next are called, in the order in which they are named."""

_QUOTES = {"`": "a column's name", '"': "a column's name", "'": "a text"}
_MAX_DIGITS = 400
"""Digits; a longer whole number is beyond float64."""


def parse_event(text: str) -> Event:
    """Return the event that a text describes.

    ``alcohol > 12 and quality >= 7``: comparisons are ``<``, ``<=``, ``=`` or ``==``, ``!=`` or ``<>``, ``>=``, ``>``,
    ranges such as ``9 < alcohol <= 12``, ``between 9 and 12`` (both ends belong to it), ``in (...)`` and ``not in
    (...)``. They are combined by ``not``, ``and``, ``or`` (also ``!``, ``&&``, ``||``, or ``~``, ``&``, ``|``), in this
    order of precedence, and parentheses. Column names with spaces or signs stand in backticks or double quotes; labels,
    and dates in ISO 8601, in single quotes; a quote inside is doubled. Words of the language may be in capitals.

    Parameters
    ----------
    text : str

    Raises
    ------
    QueryError
        For a text that is no event; it shows the place. Columns and labels are checked when the event meets a schema.

    Examples
    --------
    >>> parse_event("alcohol > 12 && (color = 'red' || `fixed acidity` <= 6.5e0)")
    alcohol > 12 and (color == 'red' or `fixed acidity` <= 6.5)
    >>> parse_event("9 < alcohol <= 12").columns
    ('alcohol',)
    """
    if not isinstance(text, str):
        raise QueryError(f"an event of type {type(text).__name__}", "a text such as 'alcohol > 12'")
    if not text.strip():
        raise QueryError("an empty event", "a text such as 'alcohol > 12'")
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    try:
        return _event(_parser().parse(text), text, 1)
    except (UnexpectedCharacters, UnexpectedToken) as error:
        refused = error
    # here, where no traceback of the parser's hides the message
    if isinstance(refused, UnexpectedCharacters):
        _refuse_character(text, refused.pos_in_stream)
    _refuse_token(text, refused)


def as_event(event: Event | str, schema: Schema | None = None) -> Event:
    """Return an event given as such or as a text; a schema tells more of some mistakes.

    Raises
    ------
    QueryError
        For anything else, and for a text that is no event.
    """
    if isinstance(event, Event):
        return event
    if isinstance(event, str):
        try:
            return parse_event(event)
        except TwoColumnsError as error:
            if schema is None:
                raise
            refused = error
        refuse_two_columns(refused.names, refused.places, schema)
    if isinstance(event, Col):
        event.refuse_alone()
    raise QueryError(
        f"an event of type {type(event).__name__}", "a text such as 'alcohol > 12', or bj.col('alcohol') > 12"
    )


def with_or_in_words(text: str) -> str:
    """Return an event as it is written, "or" for ``|``, which beside evidence stands for "given".

    Examples
    --------
    >>> with_or_in_words("a > 1|b = 'x|y'")
    "a > 1 or b = 'x|y'"
    """
    for token in reversed([token for token in _parser().lex(text) if token.type == "_OR" and "|" in token]):
        text = f"{text[: token.start_pos].rstrip()} or {text[token.end_pos :].lstrip()}"
    return text


@functools.cache
def _parser() -> Lark:
    """Return the parser; making it takes some hundredths of a second."""
    from lark import Lark

    return Lark(GRAMMAR, parser="lalr", lexer="basic")


def _event(tree: Tree, text: str, depth: int) -> Event:
    """Return the event of a node of the syntax tree, whose levels are real: parentheses alone leave no trace in it."""
    parts: list = tree.children
    compound = tree.data in ("either", "both", "negation")
    if compound and depth > MAX_EVENT_DEPTH:
        raise EventError(f"an event with {depth} levels of and, or, not inside each other", f"at most {depth - 1}")
    match tree.data:
        case "either":
            return any_of([_event(part, text, depth + 1) for part in parts])
        case "both":
            return all_of([_event(part, text, depth + 1) for part in parts])
        case "negation":
            return none_of(_event(parts[1], text, depth + 1))
        case "chain":
            return _chain(parts, text)
    column, *values = (part for part in parts if part.type != "NOT")
    leaf = (_range if tree.data == "range" else _set)(column, values, text)
    return leaf if len(parts) == 1 + len(values) else none_of(leaf)


def _range(column: Token, values: list[Token], text: str) -> Leaf:
    name = _name(column)
    lo, hi = (_value(value, name, text) for value in values)
    return Between(name, lo, hi, "both", _places(text, column, *values))


def _set(column: Token, values: list[Token], text: str) -> Leaf:
    name = _name(column)
    return membership(name, [_value(value, name, text) for value in values], _places(text, column, *values))


def _chain(parts: list[Token], text: str) -> Event:
    """Return the event of a comparison, or of several that share operands as in ``9 < alcohol <= 12``."""
    operands = parts[::2]
    operators = [{"=": "==", "<>": "!="}.get(sign, str(sign)) for sign in parts[1::2]]
    pairs = []
    for left, operator, right in zip(operands[:-1], operators, operands[1:], strict=True):
        if _is_column(left) == _is_column(right):
            _refuse_pair(text, left, right)
        column, value = (left, right) if _is_column(left) else (right, left)
        pairs.append((column, operator if column is left else FLIPPED[operator], value))
    if len(pairs) == 2 and pairs[0][0] is pairs[1][0]:
        signs = {operator: value for _, operator, value in pairs}
        for inclusive, (left, right) in INCLUSIVE.items():
            lower, upper = FLIPPED[left], right
            if signs.keys() == {lower, upper}:
                column = pairs[0][0]
                name, ends = _name(column), (signs[lower], signs[upper])
                lo, hi = (_value(end, name, text) for end in ends)
                return Between(name, lo, hi, inclusive, _places(text, column, *ends))
    return all_of(
        [
            Comparison(_name(column), operator, _value(value, _name(column), text), _places(text, column, value))
            for column, operator, value in pairs
        ]
    )


def _is_column(token: Token) -> bool:
    return token.type in ("NAME", "QUOTED")


def _places(text: str, *tokens: Token) -> tuple[Place, ...]:
    return tuple(Place(text, token.start_pos or 0) for token in tokens)


def _name(token: Token) -> str:
    return str(token) if token.type == "NAME" else _unquoted(token)


def _unquoted(token: Token) -> str:
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote)


def _value(token: Token, column: str, text: str) -> Value:
    place = Place(text, token.start_pos or 0)
    match token.type:
        case "TEXT":
            return _unquoted(token)
        case "TRUE" | "FALSE":
            return token.type == "TRUE"
    number = float(token)
    lost = number == 0.0 and re.search("[1-9]", token.lower().partition("e")[0])
    if lost or (number in (float("inf"), float("-inf")) and "n" not in token.lower()):
        raise EventError(f"the number {_shortened(token)} is beyond float64", place=place)
    whole = re.fullmatch(r"[+-]?[0-9]+", token) and len(token) <= _MAX_DIGITS
    return as_value(int(token) if whole else number, column, place)


# --- mistakes --------------------------------------------------------------------------------------------------------


def _shortened(token: str) -> str:
    return str(token) if len(token) <= 40 else f"{token[:37]}..."


def _refuse_pair(text: str, left: Token, right: Token) -> NoReturn:
    place = Place(text, right.start_pos or 0)
    if _is_column(right):
        remedy = f"If {right} is a label, write {rendered_value(_name(right))} in single quotes."
        raise TwoColumnsError((_name(left), _name(right)), (Place(text, left.start_pos or 0), place), remedy)
    raise EventError(
        "two values are compared", "a column and a value", "Columns stand in backticks or double quotes.", place=place
    )


def _refuse_character(text: str, position: int) -> NoReturn:
    place = Place(text, position)
    quote = _QUOTES.get(text[position])
    if quote is not None:
        raise EventError(f"{quote} begins with {text[position]} and has no end", "the same quote again", place=place)
    found = f"unexpected {text[position]!r} in the event"
    remedy = _remedy_of_value(text, position) or _quoting_remedy(text, position) or "Texts stand in single quotes."
    raise EventError(found, None, remedy, place=place)


def _refuse_token(text: str, error: UnexpectedToken) -> NoReturn:
    token = error.token
    at_end = token.type == "$END"
    position = len(text.rstrip()) if at_end else token.start_pos or 0
    accepted = error.accepts or error.expected
    names = [name for terminal, name in _WORDS.items() if terminal in accepted]
    found = "the event ends too early" if at_end else f"unexpected {_shortened(token)!r} in the event"
    remedy = None
    if {"COMPARE", "_IN"} <= accepted:  # a column was read
        remedy = "A column that is true or false is compared too: smoker = true."
        if token.type in ("NAME", "NUMBER"):
            remedy = _quoting_remedy(text, position)
        elif token.type == "LPAR":
            remedy = _parentheses_remedy(text, position)
    elif "NAME" in accepted and token.lower() in KEYWORDS:
        remedy = f"A column of that name stands in backticks: {rendered_name(str(token))}."
    elif "NUMBER" in accepted and "NAME" not in accepted and _is_column(token):
        remedy = "Labels stand in single quotes."
    remedy = _remedy_of_value(text, position) or remedy
    raise EventError(found, " or ".join(_listed(names)), remedy, place=Place(text, position))


def _listed(names: list[str]) -> list[str]:
    """Return names such that joining them by "or" gives a list."""
    return names if len(names) < 3 else [", ".join(names[:-1]), names[-1]]


_UNIT = r"[%$€£]|°[CF]?|[kcmµ]?m[²³23]?|k?g|mg|m?l|h|min|m?s|km/h|m/s|k?Wh?|[kM]?Hz|h?Pa|bar|EUR|USD|GBP|CHF"
_UNIT = rf"{_UNIT}|(?:years?|months?|weeks?|days?|hours?|minutes?|seconds?)\b"
_ONE_VALUE = r"('[^']*'|[+-]?\d[\w.]*)"
_CURRENCY = "[$€£] ?"
_THOUSANDS = r"\d{1,3}(?:(?:,\d{3}){2,}(?:\.\d+)?|(?:,\d{3})+\.\d+|(?:\.\d{3}){2,}(?:,\d+)?|(?:\.\d{3})+,\d+)"
_VALUES = (
    (
        re.compile(r"\d{1,4}([-./])\d{1,2}\1\d{1,4}(?:[T ]\d{1,2}:[\d:.]+)?|\d{4}-\d{2}"),
        "Dates stand in single quotes: '{0}'.",
    ),
    (
        re.compile(r"(?<![\w.:])\d+(?::\d{2}){1,2}(?:\.\d+)?(?: ?[ap]\.?m\b\.?|(?![\w:]))", re.IGNORECASE),
        "Times stand in single quotes: '{0}'.",
    ),
    (re.compile(r"\bis\s+(?:not\s+)?(?:null|na|nan|none|missing|empty)\b", re.IGNORECASE), NO_TEST_FOR_MISSING),
    (re.compile(r"\bis\s+not\b", re.IGNORECASE), "Write != in place of 'is not'."),
    (re.compile(r"\bis\b", re.IGNORECASE), "Write = in place of 'is'."),
    (
        re.compile(rf"[+-]?{_CURRENCY}{_THOUSANDS}(?![\w,])"),
        "Numbers stand without their unit and marks between thousands, and with a decimal point.",
    ),
    (
        re.compile(rf"(?<![\w.,]){_THOUSANDS}(?![\w,])"),
        "Numbers stand without marks between thousands, and with a decimal point.",
    ),
    (
        re.compile(rf"(?<![\w.])([+-]?)(?:{_CURRENCY})?(\d+),(\d{{3}})(?![\w,])"),
        "Write {1}{2}{3}, or {1}{2}.{3} if the comma is a decimal mark.",
    ),
    (
        re.compile(rf"(?<![\w.])([+-]?)(?:{_CURRENCY})?(\d+),(\d+)(?![\w,])"),
        "The decimal mark of a number is a point: {1}{2}.{3}.",
    ),
    (re.compile(rf"(?<![\w.,'])([+-]?\d+(?:\.\d+)?) ?(?:{_UNIT})(?!\w)"), "Numbers stand without their unit: {1}."),
    (re.compile(rf"([+-]?){_CURRENCY}([+-]?\d+(?:\.\d+)?)(?![\w.,])"), "Numbers stand without their unit: {1}{2}."),
    (
        re.compile(
            r"(?:[=<>(,]|\bbetween\s)\s*((?=[\w.-]*[^\W\d_])\d[\w.]*(?:-\w+)*|[^\W\d]\w*-\d[\w-]*)"
            r"(?=\s*(?:$|[),&|]|(?:and|or)\b))",
            re.IGNORECASE,
        ),
        "Texts stand in single quotes: '{1}'.",
    ),
    (re.compile(r"^\s*P\s*\("), "An event stands without P( ), and evidence is given apart (given=, or --given)."),
    (re.compile(r"\bgiven\b", re.IGNORECASE), "Evidence is given apart (given=, or --given)."),
    (
        re.compile(rf"(?<![<>!])=\s*{_ONE_VALUE}\s+or\s+{_ONE_VALUE}\s*(?:\)|$|and\b|or\b)", re.IGNORECASE),
        "Write in ({1}, {2}) in place of = {1} or {2}.",
    ),
    (re.compile(r"=([<>])"), "Write {1}=."),
    (re.compile(r"\bin\s*[\[{]([^\[\]{}]*)[\]}]", re.IGNORECASE), "Values of a list stand in parentheses: ({1})."),
    (
        re.compile("[\u2018\u201a\u201c\u201e\xab]([^\u2018\u2019\u201c\u201d\xbb]*)[\u2018\u2019\u201c\u201d\xbb]"),
        "Texts stand in straight single quotes: '{1}'.",
    ),
    (re.compile("\u2264"), "Write <= in place of {0}."),
    (re.compile("\u2265"), "Write >= in place of {0}."),
    (re.compile("\u2260"), "Write != in place of {0}."),
    (re.compile("\u2212"), "Write - in place of {0}, which is another sign."),
)
"""What people write for values and comparisons, and the remedies."""


def _remedy_of_value(text: str, position: int) -> str | None:
    """Return how what stands at a place is written, where people often write it otherwise; None for the rest."""
    for pattern, remedy in _VALUES:
        for match in pattern.finditer(text):
            if match.start() <= position < match.end() or position == match.end() == len(text):
                return remedy.format(match[0], *match.groups())
    return None


def _quoting_remedy(text: str, position: int) -> str | None:
    """Return how a name is quoted, where the place is inside of what may be a name with spaces or signs."""
    words = re.compile(r"[^\s()<>=!,'\"`&|~]+(?:[ \t]+[^\s()<>=!,'\"`&|~]+)*")
    for match in words.finditer(text):
        if match.start() <= position < match.end() and not _WORD_OF_OURS.search(match[0]):
            return f"A name with spaces or signs stands in backticks: {rendered_name(match[0])}."
    return None


def _parentheses_remedy(text: str, position: int) -> str:
    """Return how a name with parentheses is quoted, where one opens behind a word."""
    match = re.compile(r"\([^()<>=!]*\)").match(text, position)
    before = re.search(r"[^\s()<>=!,'\"`&|~]+\s*$", text[:position])
    name = f"{before[0]}{match[0]}" if match and before else "a (b)"
    return f"A name with spaces or signs stands in backticks: {rendered_name(name)}."


_WORD_OF_OURS = re.compile(rf"\b({'|'.join(KEYWORDS)})\b", re.IGNORECASE)
