"""Label sets in an order that people know, in several languages, and sets that have none."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.errors import BayesjptWarning
from bayesjpt.table import scales
from bayesjpt.table.ordered_labels import LETTERS, NUMBERED, WORDS, _normal, known_order
from bayesjpt.table.table import as_table

ORDERED = {
    "degrees": ["low", "medium", "high"],
    "two sizes": ["small", "large"],
    "degrees of a noun": ["Low risk", "Medium risk", "High risk"],
    "clothes": ["XS", "S", "M", "L", "XL", "XXL"],
    "frequencies": ["never", "rarely", "sometimes", "often", "always"],
    "agreement": ["Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"],
    "education": ["primary", "secondary", "tertiary"],
    "degrees with an apostrophe": ["Primary", "Secondary", "Bachelor's", "Master’s", "PhD"],  # noqa: RUF001
    "months": ["Jan", "Feb", "Mar", "Dec"],
    "numbered words": ["1 - low", "2 - medium", "3 - high"],
    "German degrees": ["niedrig", "mittel", "hoch"],
    "German weekdays": ["Mo", "Di", "Mi", "Do", "Fr"],
    "German schools": ["Hauptschule", "Realschule", "Abitur", "Universität"],
    "German marks": ["ungenügend", "ausreichend", "befriedigend", "gut", "sehr gut"],
    "French degrees": ["faible", "moyen", "élevé"],
    "French sizes": ["petit", "moyen", "grand"],
    "French frequencies": ["jamais", "parfois", "souvent", "toujours"],
    "French weekdays": ["lundi", "mardi", "mercredi"],
    "Spanish degrees": ["bajo", "medio", "alto"],
    "Spanish months": ["enero", "febrero", "diciembre"],
    "how often": ["Never", "Rarely", "Once a week", "2-3 times a week", "Daily"],
    "times a unit": [
        "Never",
        "Less than once a month",
        "1-3 times a month",
        "Once a week",
        "2-4 times a week",
        "Daily",
    ],
    "times or less": ["Never", "Monthly or less", "2-4 times a month", "2-3 times a week", "4 or more times a week"],
    "times and a period": ["never", "1-2 times", "weekly"],
    "almost every": ["less often", "every few weeks", "once a week", "almost every day", "several times a day"],
    "every so many": ["annually", "every 3 months", "every other week", "twice a week"],
    "days of a week": ["Less than 1 day a week", "1-2 days a week", "3-4 days per week", "5+ days a week"],
    "times, in short": ["1x/week", "2x/week", "3x/week"],
    "degrees in letters": ["HS", "BA", "MA", "PhD"],
    "advice": ["Sell", "Hold", "Buy", "Strong Buy"],
    "wind": ["calm", "light", "moderate", "strong", "gale"],
    "quarters, or stages": ["T1", "T2", "T3", "T4"],
    "German marks of schools": ["ungenügend", "mangelhaft", "ausreichend", "gut", "sehr gut"],
    "Austrian marks": ["nicht genügend", "genügend", "befriedigend", "gut", "sehr gut"],
    "French marks": ["Passable", "Assez bien", "Bien", "Très bien", "Félicitations"],
    "Italian marks": ["insufficiente", "sufficiente", "discreto", "buono", "distinto", "ottimo"],
    "Spanish marks": ["suspenso", "aprobado", "notable", "sobresaliente", "matrícula de honor"],
    "satisfaction": [
        "Very dissatisfied",
        "Dissatisfied",
        "Neither satisfied nor dissatisfied",
        "Satisfied",
        "Very satisfied",
    ],
    "Spanish satisfaction": ["Muy insatisfecho", "Insatisfecho", "Ni satisfecho ni insatisfecho", "Satisfecho"],
    "French satisfaction": ["Pas du tout satisfait", "Plutôt pas satisfait", "Plutôt satisfait", "Très satisfait"],
    "Italian satisfaction": ["Insoddisfatto", "Né soddisfatto né insoddisfatto", "Soddisfatto", "Molto soddisfatto"],
    "German agreement": [
        "Trifft überhaupt nicht zu",
        "Trifft eher nicht zu",
        "Teils/teils",
        "Trifft eher zu",
        "Trifft voll und ganz zu",
    ],
    "changes": ["Much worse", "Worse", "About the same", "Better", "Much better"],
    "American schools": ["Less than high school", "High school diploma", "Some college", "Bachelor's degree"],
    "Spanish schools": ["primaria", "secundaria", "universitaria"],
    "stages of cancer": ["IA", "IB", "IIA", "IIB", "III", "IV"],
    "body mass": ["Underweight", "Normal", "Overweight", "Obese"],
    "Polish agreement": ["zdecydowanie nie", "raczej nie", "trudno powiedzieć", "raczej tak", "zdecydowanie tak"],
    "Polish frequencies": ["nigdy", "rzadko", "czasami", "często", "zawsze"],
    "Polish degrees": ["niski", "średni", "wysoki"],
    "Polish marks": ["niedostateczny", "dopuszczający", "dostateczny", "dobry", "bardzo dobry", "celujący"],
    "Turkish agreement": ["Hiç katılmıyorum", "Kararsızım", "Katılıyorum", "Tamamen katılıyorum"],  # noqa: RUF001
    "Turkish frequencies": ["hiç", "nadiren", "bazen", "sık sık", "her zaman"],  # noqa: RUF001
    "Turkish marks": ["çok kötü", "kötü", "orta", "iyi", "çok iyi"],
    "Turkish months": ["Ocak", "Şubat", "Mart", "Ekim"],
}
RANKS = {
    "ages": ["18-24", "25-34", "35-44", "65+"],
    "ends": ["<5", "5-10", ">10"],
    "halves of years": ["H1 2023", "H2 2023", "H1 2024"],
    "in words": ["under 18", "18 to 30", "over 30"],
    "French ages": ["moins de 18 ans", "18-24 ans", "25-64 ans", "65 ans et plus"],
    "German ages": ["unter 18 Jahre", "18 bis 64 Jahre", "65 Jahre und älter"],
    "Spanish ages": ["menos de 20 años", "20 a 29 años", "30 años o más"],
    "years and over": ["under 18 years", "18 to 64 years", "65+ years"],
    "centuries": ["18th century", "19th century", "20th century"],
    "French ranks": ["1er", "2e", "3e"],
    "French floors": ["RDC", "1er", "2e", "3e"],
    "stars": ["★", "★★", "★★★★"],
    "full and empty stars": ["★☆☆", "★★☆", "★★★"],
    "prices": ["$", "$$", "$$$"],
    "doors": ["2", "3", "4", "5more"],
    "levels": ["level 1", "level 2", "level 10"],
    "periods": ["2020-01", "2020-02", "2021-01"],
    "seasons": ["2020/21", "2021/22", "2022/23"],
    "seasons by a dash": ["2020-21", "2021-22", "2022-23"],
    "weeks": ["2023-W52", "2024-W9", "2024-W41"],
    "eighths": ["0/8", "3/8", "8/8"],
    "sizes": ["Size 8", "Size 10", "Size 12"],
    "ratings with words at their ends": ["1 - sehr schlecht", "2", "3", "4", "5 - sehr gut"],
    "one year and several": ["< 1 year", "1-3 years", "3-5 years", "5+ years"],
    "one year and several in German": ["<1 Jahr", "1-3 Jahre", "3-5 Jahre", "> 5 Jahre"],
    "school marks": ["1+", "1", "1-", "2+", "2", "3-"],
    "signs": ["--", "-", "o", "+", "++"],
    "signs above none": ["neg", "+", "++", "+++"],
    "ranges downwards": ["20-5", "50-20", "100-50"],
}
UNORDERED = {
    "how often a wage is paid": ["Hourly", "Salaried", "Commission"],
    "parts of a day": ["day", "night", "evening"],
    "codes with digits": ["A11", "A12", "A13", "A14"],
    "numbered groups": ["group 1", "group 2", "group 3"],
    "signs alone": ["+", "-", "0"],
    "answers, and none": ["-", "yes", "no"],
    "colours": ["red", "green", "yellow"],
    "answers": ["no", "yes"],
    "answers in French": ["non", "oui"],
    "answers, or none": ["Non", "Oui", "Ne sait pas"],
    "letters": ["x", "xx", "xxx"],
    "house numbers": ["3 rue", "5 rue", "12 rue"],
    "sexes": ["M", "F", "I"],
    "plans": ["basic", "plus", "pro"],
    "one word of a scale": ["High", "Rad Flow", "Bypass"],
    "places": ["US", "Japan", "Europe"],
    "lengths": ["5 m", "10 m", "20 m"],
    "scores": ["0-0", "0-1", "1-0", "2-1"],
    "points at tennis": ["15-30", "30-30", "40-15"],
    "codes of two numbers": ["12-34", "56-78", "90-12"],
    "fractions": ["1/4", "1/2", "3/4"],
    "things of several kinds": ["1 apple", "2 pears", "3"],
}


SETS = [(WORDS, own) for own in ORDERED.values()] + [(NUMBERED, own) for own in RANKS.values()]


@pytest.mark.parametrize(("kind", "labels"), SETS, ids=[*ORDERED, *RANKS])
def test_known_sets_of_labels_are_put_in_their_order(kind, labels, rng):
    found = known_order(list(rng.permutation(labels)))
    assert found is not None
    assert found.kind == kind
    assert list(found.labels) in (labels, labels[::-1])
    assert found.n_known == len(labels)


@pytest.mark.parametrize("labels", UNORDERED.values(), ids=UNORDERED)
def test_other_sets_of_labels_have_no_order(labels):
    assert known_order(labels) is None


def test_texts_are_no_words_of_a_scale_however_many_words_they_share():
    words = " agree" * 40
    assert known_order(["low" + words, "medium" + words, "high" + words]) is None
    assert known_order(["low" + words[:120], "medium" + words[:120], "high" + words[:120]]) is not None


def test_letters_in_a_row_are_told_from_scales():
    assert known_order(["C", "A", "F", "B", "D"]).kind == LETTERS
    assert known_order(["C", "A", "F", "B", "D"]).labels == ("A", "B", "C", "D", "F")
    assert known_order(["A", "R", "Z"]) is None


def test_levels_of_a_language_are_codes_of_something_else_beside_other_labels():
    assert known_order(["B1", "A1", "A2"]).labels == ("A1", "A2", "B1")
    assert known_order(["B1", "A1", "A2", "none"]).ranked == ("A1", "A2", "B1")
    assert known_order(["A1", "A2", "B1", "C3"]) is None


def test_a_label_beside_a_scale_has_no_place_on_it():
    found = known_order(["unknown", "high", "low", "medium"])
    assert found.labels == ("low", "medium", "high", "unknown")
    assert np.array_equal(found.places(["high", "unknown", "low"]), [2.0, np.nan, 0.0], equal_nan=True)


def test_every_word_of_a_scale_has_one_rank_and_can_be_met():
    for line in scales.SCALES.strip().splitlines():
        words = [_normal(word) for rank in line.split(" < ") for word in rank.split(",")]
        assert len(words) == len(set(words)), line
        assert all(words), line


@pytest.mark.parametrize("form", ["{}Q{}", "{}-Q{}", "{} q{}", "{}-W{:02d}", "Q{1} {0}", "KW {1}/{0}", "T{1}-{0}"])
def test_weeks_and_quarters_come_year_by_year(form):
    labels = [form.format(year, part) for year in (2023, 2024) for part in (1, 2, 4)]
    assert known_order(labels[::-1]).labels == tuple(labels)


@pytest.mark.parametrize(
    ("labels", "ordered"),
    [
        (["2.0.0", "1.10.2", "1.9.0"], ("1.9.0", "1.10.2", "2.0.0")),
        (["P10", "P9", "P010", "P2"], ("P2", "P9", "P010", "P10")),
        (["zebra", "ant", "moose"], ("ant", "moose", "zebra")),
    ],
)
def test_an_order_that_nobody_knows_is_told_where_it_is_asked_for(labels, ordered):
    with pytest.warns(
        BayesjptWarning, match="order of the labels of column 'x' is not known .*: " + " < ".join(ordered)
    ):
        table = as_table({"x": labels * 9}, kinds={"x": "ordinal"})
    assert table.schema.columns[0].labels == ordered


@pytest.mark.parametrize(
    "labels", [["low", "high", "medium"], ["3", "10", "7"], ["1.5 m", "10 m", "2 m"], ["ja", "so"]]
)
def test_an_order_that_is_known_or_of_two_is_not_told(labels):
    as_table({"x": labels * 9}, kinds={"x": "ordinal"})
