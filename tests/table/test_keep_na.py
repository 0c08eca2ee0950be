"""Words that usually mean a missing cell, kept as labels where the user says so."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, TableError
from bayesjpt.table.read import read_cells
from bayesjpt.table.write import write_filled

ROWS = 30


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "regions.csv"
    regions = ["NA", "EU", "AS"] * (ROWS // 3)
    pd.DataFrame({"region": regions, "size": [*(k * k % 17 for k in range(ROWS - 1)), "N/A"]}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("keep_na", ["NA", "region=NA", ["NA", "other=null"]])
def test_a_word_that_is_kept_is_a_label_and_others_stay_missing(csv, keep_na):
    table = bj.read_table(csv, keep_na=keep_na)
    assert table.schema.columns[0].labels == ("AS", "EU", "NA")
    assert table.n_missing == 1
    frame = pd.read_csv(csv, keep_default_na=False)
    assert bj.as_table(frame, keep_na=keep_na).schema.columns[0].labels == ("AS", "EU", "NA")


@pytest.mark.filterwarnings("ignore:'NA' in column")
def test_a_word_is_kept_for_the_column_that_is_named_alone(csv):
    assert bj.read_table(csv, keep_na="size=NA").schema.columns[0].labels == ("AS", "EU")


def test_new_rows_keep_what_is_a_label_of_the_schema(csv):
    schema = bj.read_table(csv, keep_na="region=NA").schema
    assert bj.read_table(csv, schema=schema).observed[0].all()


def test_a_filled_table_has_the_word_where_it_stood(csv, tmp_path):
    table = bj.read_table(csv, keep_na="NA")
    cells, _ = read_cells(csv, as_written=True)
    filled = bj.as_table(table.to_frame().fillna({"size": 3.0}), schema=table.schema)
    write_filled(cells, filled, table.observed, tmp_path / "out.csv")
    written = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
    np.testing.assert_array_equal(written["region"], ["NA", "EU", "AS"] * (ROWS // 3))
    assert written["size"].tolist()[-1] == 3


def test_a_word_that_is_a_label_anyway_is_refused(csv):
    with pytest.raises(TableError, match=r"'none'.*labels already"):
        bj.read_table(csv, keep_na="none")


def test_nan_among_codes_of_three_letters_is_told(recwarn):
    bj.as_table({"to": ["NAN", "JFK", "CDG"] * 20, "size": [k * k % 17 for k in range(60)]})
    assert "'NAN' in column 'to' is read as missing, in 20 of 60 rows" in str(recwarn.pop().message)
    bj.as_table({"to": ["NAN", "abc", "CDG"] * 20, "size": [k * k % 17 for k in range(60)]})
    assert not len(recwarn)


WORDS = {"many": (10, 30, ""), "few": (4, 96, ""), "as in numbers": (10, 30, "n/a")}


@pytest.mark.parametrize("case", WORDS)
def test_not_applicable_is_told_where_it_may_be_an_answer(case, recwarn):
    n_word, n_label, number = WORDS[case]
    outcome = ["n/a"] * n_word + ["home", "ward", "ICU"] * (n_label // 3)
    size = [number, *(f"{k * k % 17}.5" for k in range(len(outcome) - 1))]
    assert bj.as_table({"outcome": outcome, "size": size}).schema.columns[0].n_missing == n_word
    found = [str(one.message) for one in recwarn if "'n/a' in column 'outcome'" in str(one.message)]
    assert ["10 of 40 rows" in message for message in found] == [True] * (case == "many")
    bj.as_table({"outcome": outcome, "size": size}, na="outcome=n/a")
    assert len(recwarn) == (case == "many")


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["NA", "DE", "ZA", "UK"], "keep_na='to=NA'"),
        (["na", "de", "za", "fr"], "keep_na='to=na'"),
        (["na", "De", "za", "fr"], ""),
        (["NA", "yes", "no"], ""),
    ],
)
def test_namibia_is_asked_for_among_codes_of_countries(labels, said, recwarn):
    frame = {"to": labels * 15, "size": [k * k % 17 for k in range(15 * len(labels))]}
    bj.as_table(frame)
    told = "; ".join(str(one.message) for one in recwarn)
    assert (said in told) if said else ("Namibia" not in told)
    recwarn.clear()
    bj.as_table(frame, na=labels[0])
    assert not list(recwarn)


def test_values_said_to_be_missing_that_no_cell_holds_are_told(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n-999,x\n1.5,NA\n2.5,-\n3.5,y\n", encoding="utf-8")
    with pytest.warns(BayesjptWarning, match=r"no cell holds what na, or --na, says.*: 'gone', 'b=-999', 'c=1'"):
        bj.read_table(tmp_path / "t.csv", na=["-999", "gone", "b=-999", "c=1", "NA", "b=NA", "b=-"])
    schema = bj.read_table(tmp_path / "t.csv", na="-999").schema
    bj.read_table(tmp_path / "t.csv", na=["-999", "gone"], schema=schema)  # new rows may lack it
