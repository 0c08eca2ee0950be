"""Countries by their two letters. Namibia's are what a missing cell is often written as."""

from __future__ import annotations

import textwrap
from collections.abc import Collection

NAMIBIA = "NA"
_LEAST = 5
"""Other countries from which on a column is taken for one of countries."""
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
    """
    if len(others) >= 3 and _CONTINENTS.issuperset(others) and {"EU", "OC"} & {*others}:
        return "North America"
    return "Namibia" if len(others) >= _LEAST and _ALPHA_2.issuperset(others) else ""
