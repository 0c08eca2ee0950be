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
_USED_AS_SUCH = frozenset({"UK", "EL", "EU", "XX", "ZZ", "AN", "CS", "YU"})
"""What stands beside them: other codes of two countries, the union, the unknown, and countries that are no more."""
_CONTINENTS = frozenset({"AF", "AN", "AS", "EU", "OC", "SA"})


def place_called_na(others: Collection[str]) -> str:
    """Return the place that NA may be beside other codes; empty where these are no codes of places.

    Examples
    --------
    >>> place_called_na(["DE", "FR", "ZA", "BW", "US"]), place_called_na(["AF", "EU", "SA"])
    ('Namibia', 'North America')
    >>> place_called_na(["FL", "CA", "TX", "NY", "WA"])
    ''
    >>> place_called_na(["DE", "ZA", "UK"]), place_called_na(["SI", "NO"])
    ('Namibia', '')
    """
    if len(others) >= _LEAST and _CONTINENTS.issuperset(others) and {"EU", "OC"} & {*others}:
        return "North America"
    codes = {*others} - _USED_AS_SUCH
    is_of_countries = len(codes) >= _LEAST and _ALPHA_2.issuperset(codes) and not _YES_OR_NO.issuperset(codes)
    return "Namibia" if is_of_countries else ""
