"""Names of months are given back as they were written, in full or short."""

from __future__ import annotations

import pytest

from bayesjpt.table.written_dates import date_readings


@pytest.mark.parametrize(
    "texts",
    [
        ["1. März 2021", "28. März 2021"],
        ["3 June 2021", "4 July 2020"],
        ["9 août 2020", "2 mai 2021"],
        ["2 juin 2020", "3 juin 2020"],
        ["3 May 2021", "4 May 2020"],
        ["3 Jun 2021", "4 Jul 2020"],
    ],
)
def test_names_of_four_letters_are_given_back_in_full(texts):
    found = date_readings(texts)
    assert found is not None
    assert [found.notations[0].text(value) for value in found.values[0]] == texts
