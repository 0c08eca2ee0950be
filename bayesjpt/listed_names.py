"""Names of columns as users list them."""

from __future__ import annotations

import re

_NAME = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^,]*?))\s*(?:,|\Z)')


def split_names(listed: str) -> list[str]:
    """Return names that commas part; one that holds a comma stands in double quotes, those in it doubled.

    Examples
    --------
    >>> split_names('"size, in cm", age,,the "other" one'), split_names(" , ")
    (['size, in cm', 'age', 'the "other" one'], [])
    """
    found = [quoted.replace('""', '"') or plain for quoted, plain in _NAME.findall(listed)]
    return [name for name in found if name]
