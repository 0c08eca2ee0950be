"""What `bayesjpt predict` prints: labels in their order, rows by number, numbers without a power of ten."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.cli_predict import as_csv
from bayesjpt.queries.predict import Prediction
from bayesjpt.table.schema import Column


def test_labels_with_a_known_order_come_in_it():
    column = Column("level", "category", (0.0, 2.0), labels=("high", "low", "medium"))
    prediction = Prediction(column, column.labels, np.array([[0.5, 0.2, 0.3]]))
    assert as_csv(prediction).split() == ["row,low,medium,high", "1,0.2,0.3,0.5"]


def test_a_label_may_be_called_row():
    column = Column("axis", "category", (0.0, 1.0), labels=("column", "row"))
    assert as_csv(Prediction(column, column.labels, np.array([[0.5, 0.5]]))).startswith("row_,column,row")


@pytest.mark.parametrize(
    ("base", "resolution", "value", "text"),
    [
        ("real", 0.01, 48.13527, "48.1353"),
        ("real", 1.0, 1_234_567.891, "1234567.9"),
        ("real", 0.1, 0.00123456, "0.00123456"),
        ("integer", 1.0, 58.5284, "58.5284"),
        ("real", 100.0, 0.0, "0"),
    ],
)
def test_numbers_have_a_digit_more_than_was_recorded_and_six_at_least(base, resolution, value, text):
    column = Column("x", base, (0.0, np.inf), resolution=resolution)
    assert as_csv(Prediction(column, ("mean",), np.array([[value]]))).split() == ["row,mean", f"1,{text}"]


def test_dates_keep_the_steps_of_their_column():
    column = Column("week", "real", (-np.inf, np.inf), step=7.0, offset=4.0, dtype="datetime")
    (line,) = as_csv(Prediction(column, ("mean", "lower"), np.array([[19724.2, 19728.0]]))).splitlines()[1:]
    assert line == "1,2024-01-01,2024-01-08"  # Mondays
    column = Column("end", "real", (-np.inf, np.inf), months=3.0, offset=-1.0, dtype="datetime")
    (line,) = as_csv(Prediction(column, ("mean", "lower"), np.array([[19724.2, 19790.0]]))).splitlines()[1:]
    assert line == "1,2023-12-31,2024-03-31"
