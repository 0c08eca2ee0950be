"""Countries by their two letters. Namibia's are what a missing cell is often written as."""

from __future__ import annotations

import textwrap
from collections.abc import Collection

NAMIBIA = "NA"
_LEAST = 2
"""Other countries from which on a column is taken for one of countries: a warning too many loses no country."""
_YES_OR_NO = frozenset({"SI", "NO"})
"""Codes of countries, and the answers of a questionnaire in Spanish or Italian."""
_ALPHA_2 = frozenset(
    textwrap.wrap(
        "ADAEAFAGAIALAMAOAQARASATAUAWAXAZBABBBDBEBFBGBHBIBJBLBMBNBOBQBRBSBTBVBWBYBZCACCCDCFCGCHCICKCLCMCNCOCRCUCVCWCXCYCZ"
        "DEDJDKDMDODZECEEEGEHERESETFIFJFKFMFOFRGAGBGDGEGFGGGHGIGLGMGNGPGQGRGSGTGUGWGYHKHMHNHRHTHUIDIEILIMINIOIQIRISITJEJMJOJP"
        "KEKGKHKIKMKNKPKRKWKYKZLALBLCLILKLRLSLTLULVLYMAMCMDMEMFMGMHMKMLMMMNMOMPMQMRMSMTMUMVMWMXMYMZNANCNENFNGNINLNONPNRNUNZOM"
        "PAPEPFPGPHPKPLPMPNPRPSPTPWPYQARERORSRURWSASBSCSDSESGSHSISJSKSLSMSNSOSRSSSTSVSXSYSZTCTDTFTGTHTJTKTLTMTNTOTRTTTVTWTZUA"
        "UGUMUSUYUZVAVCVEVGVIVNVUWFWSXKYEYTZAZMZW",
        2,
    )
)
"""ISO 3166-1 alpha-2, and XK of Kosovo."""
_CONTINENTS = frozenset({"AF", "AN", "AS", "EU", "OC", "SA"})


def place_called_na(others: Collection[str]) -> str:
    """Return the place that NA may be beside other codes; empty where these are no codes of places.

    Examples
    --------
    >>> place_called_na(["DE", "FR", "ZA", "BW", "US"]), place_called_na(["AF", "EU", "SA"])
    ('Namibia', 'North America')
    >>> place_called_na(["FL", "CA", "TX", "NY", "WA"])
    ''
    >>> place_called_na(["DE", "ZA"]), place_called_na(["SI", "NO"])
    ('Namibia', '')
    """
    if len(others) >= _LEAST and _CONTINENTS.issuperset(others) and {"EU", "OC"} & {*others}:
        return "North America"
    is_of_countries = len(others) >= _LEAST and _ALPHA_2.issuperset(others) and not _YES_OR_NO.issuperset(others)
    return "Namibia" if is_of_countries else ""
