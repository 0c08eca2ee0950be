"""The schema as a document: written, edited, read back, and wrong in every way that names its line."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesjpt.errors import BayesjptWarning, SchemaError, TableError
from bayesjpt.table import document, toml
from bayesjpt.table.document import read_schema
from bayesjpt.table.schema import Column, Schema, SetAside
from bayesjpt.table.table import as_table, read_table

storable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
finite = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(min_value=0.0, exclude_min=True, allow_infinity=False)
supports = st.tuples(st.floats(allow_nan=False), st.floats(allow_nan=False)).map(sorted).filter(lambda s: s[0] < s[1])


@st.composite
def columns(draw, name: str) -> Column:
    base = draw(st.sampled_from(["real", "integer", "category"]))
    families = draw(st.lists(storable, max_size=2, unique=True))
    if base == "category":
        labels = tuple(draw(st.lists(storable, min_size=1, max_size=40, unique=True)))
        return Column(name, base, (0.0, float(len(labels))), labels=labels, families=tuple(families))
    lo, hi = draw(supports)
    if base == "integer":
        lo, hi = (bound if math.isinf(bound) else float(math.floor(bound)) for bound in (lo, hi + 1.0))
    atoms = draw(st.lists(finite.filter(lambda atom: lo <= atom <= hi).map(lambda atom: atom + 0.0), unique=True))
    column = Column(name, base, (lo, hi), location=draw(finite), scale=draw(positive), families=tuple(families))
    if base == "real":
        column = replace(column, resolution=draw(positive), atoms=tuple(sorted(atoms)))
    return replace(column, reason=draw(st.text()), n_missing=draw(st.integers(0, 9)))


@st.composite
def schemas(draw) -> Schema:
    names = draw(st.lists(storable, min_size=1, max_size=5, unique=True))
    n_aside = draw(st.integers(0, len(names) - 1))
    aside = tuple(SetAside(name, draw(st.text())) for name in names[:n_aside])
    return Schema(tuple(draw(columns(name)) for name in names[n_aside:]), aside)


def decisions(column: Column) -> dict:
    return {key: getattr(column, key) for key in ("base", *document.KEYS[column.base])}


def no_hint(monkeypatch):
    """Offer no families: the columns of the laws are not those of a registry."""
    monkeypatch.setattr("bayesjpt.families.registry.dictionary", lambda column: ())


class TestLaws:
    @settings(derandomize=True, deadline=None, max_examples=100)
    @given(schemas())
    def test_a_written_schema_reads_back_as_the_same_decisions(self, schema):
        with pytest.MonkeyPatch.context() as monkeypatch:
            no_hint(monkeypatch)
            text = document.text_of(schema)
        read = document.parse(text, "schema.toml")
        assert read.names == (*schema.names, *(column.name for column in schema.set_aside))
        for column in schema:
            override = read.overrides[column.name]
            assert {key: getattr(override, key) for key in decisions(column)} == decisions(column)
        assert all(read.overrides[column.name].base == "excluded" for column in schema.set_aside)

    @settings(derandomize=True, deadline=None, max_examples=35)
    @given(schemas())
    def test_every_key_is_on_its_line(self, schema):
        with pytest.MonkeyPatch.context() as monkeypatch:
            no_hint(monkeypatch)
            text = document.text_of(schema)
        lines = text.split("\n")
        for path, line in toml.key_lines(text).items():
            shown = lines[line - 1]
            assert shown == f"[column.{toml.text(path[1])}]" if len(path) == 2 else shown.startswith(f"{path[-1]} = ")

    @settings(derandomize=True, deadline=None)
    @given(st.dictionaries(storable, storable | st.lists(storable | finite) | finite, max_size=5))
    def test_values_are_read_by_tomllib_as_they_were_written(self, values):
        def written(value):
            if isinstance(value, list):
                return toml.array([written(item) for item in value])
            return toml.text(value) if isinstance(value, str) else toml.number(value)

        assert (
            tomllib.loads("\n".join(f"{toml.text(key)} = {written(value)}" for key, value in values.items())) == values
        )


pools = st.one_of(
    *(
        st.lists(kind, min_size=1, max_size=30)
        for kind in (
            st.integers(-5, 5),
            st.floats(-1e6, 1e6).map(lambda number: round(number, 2)),
            st.sampled_from([0.0, 99_999.0, 3.5, 2.25]),
            storable,
            st.booleans(),
            st.datetimes().map(lambda moment: moment.replace(microsecond=0)),
            st.sampled_from(["007", "1", "2.5", "-", "N/A", "x y", '"', "2020-01-05", "true", "12,5"]),
        )
    )
)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.dictionaries(storable, pools, min_size=1, max_size=3), st.integers(0, 99))
@pytest.mark.filterwarnings("ignore:constant columns", "ignore:read as missing", "ignore:.*is read as missing")
def test_an_unedited_document_decides_any_table_as_before(columns, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: [pool[i] for i in rng.integers(len(pool), size=80)] for name, pool in columns.items()})
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("bayesjpt.table.decide._check_families", lambda column, override: None)
        try:
            table = as_table(frame)
        except (SchemaError, TableError):
            return
        again = as_table(frame, schema=document.parse(document.text_of(table.schema), "schema.toml"))
    assert again.schema == table.schema
    np.testing.assert_array_equal(again.values, table.values)


def test_lines_are_counted_through_strings_comments_and_arrays():
    text = '''# [column.no]
format = 1 # x = "
a."b.c".'d]' = """
x = 1
[column.no]\\"""" # "
[ column . "two\\nlines" ]
labels = ["]", # ]
  'a"', \'\'\'
b\'\'\', "c\\""
]
base = {x = "}", y = [1,
2]}
[[more]]
z = 1'''
    assert toml.key_lines(text) == {
        ("format",): 2,
        ("a", "b.c", "d]"): 3,
        ("column", "two\nlines"): 6,
        ("column", "two\nlines", "labels"): 7,
        ("column", "two\nlines", "base"): 11,
        ("more",): 13,
        ("more", "z"): 14,
    }


# --- against rows

N = 60


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "price": rng.gamma(3.0, 2.0, N).round(1),
            "sold": rng.poisson(3.0, N),
            "change": rng.integers(-30, 30, N),
            "color": rng.choice(["red", "white", None], N),
            "flag": rng.random(N) < 0.5,
            "two": rng.choice([3, 7], N),
            "code": rng.choice([0.25, 0.5, 1.0, 4.0], N),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, N), unit="D"),
            "gain": np.where(rng.random(N) < 0.5, 0, rng.integers(100, 90_000, N)),
            "size": pd.Categorical(rng.choice(["S", "M"], N), categories=["S", "M", "L"], ordered=True),
            "id": np.arange(N),
            "name": [f"name {i}" for i in range(N)],
        }
    )


def under(frame, text):
    return as_table(frame, schema=document.parse(text, "schema.toml"))


def column_under(frame, name, text):
    schema = under(frame, f"[column.{name}]\n{text}").schema
    return schema.columns[schema.index(name)]


def test_an_unedited_document_gives_the_same_schema_and_cells(frame, tmp_path):
    table = as_table(frame)
    table.schema.write(tmp_path / "schema.toml")
    again = as_table(frame, schema=tmp_path / "schema.toml")
    assert again.schema == table.schema
    np.testing.assert_array_equal(again.values, table.values)


@pytest.mark.parametrize("as_is", [str, lambda path: path, read_schema])
def test_a_document_is_taken_as_text_path_or_document(frame, tmp_path, as_is):
    path = tmp_path / "schema.toml"
    path.write_text('[column.sold]\nbase = "real"')
    assert as_table(frame, schema=as_is(path)).schema.columns[1].base == "real"


def test_a_document_serves_files_as_well(frame, tmp_path):
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "schema.toml").write_text('[column.sold]\nbase = "category"\n')
    table = read_table(tmp_path / "t.csv", schema=str(tmp_path / "schema.toml"))
    assert table.schema.columns[1].base == "category"


def test_what_the_rows_say_is_found_anew(frame, tmp_path):
    as_table(frame).schema.write(tmp_path / "schema.toml")
    half = as_table(frame[: N // 2], schema=tmp_path / "schema.toml").schema
    sold = frame["sold"][: N // 2]
    assert half.columns[1].levels == tuple(sorted(map(float, set(sold))))
    assert (half.columns[1].mean, half.columns[1].maximum) == (sold.mean(), sold.max())
    assert half.columns[1].location == as_table(frame).schema.columns[1].location


def test_columns_without_a_section_are_decided_from_the_rows(frame):
    schema = under(frame, '[column.sold]\nbase = "real"').schema
    assert schema.columns[0] == as_table(frame).schema.columns[0]


def test_a_column_is_set_aside_and_others_brought_back(frame):
    text = '[column.price]\nbase = "aside"\n[column.id]\nbase = "integer"\n[column.name]\nbase = "category"'
    schema = under(frame, text).schema
    assert schema.set_aside == (SetAside("price", "left out on request"),)
    assert {"id", "name"} <= set(schema.names)
    assert schema.columns[schema.index("name")].n_label == N + 1


def test_a_column_that_the_document_leaves_out_need_not_be_there(frame, tmp_path):
    """Rows that a fit has drawn do not have it."""
    table = as_table(frame)
    table.schema.write(tmp_path / "schema.toml")
    left_out = [column.name for column in table.schema.set_aside]
    assert left_out
    with pytest.warns(BayesjptWarning, match=f"'schema.toml' leaves out columns .* not have: '{left_out[0]}'"):
        again = as_table(frame.drop(columns=left_out), schema=tmp_path / "schema.toml")
    assert again.schema.columns == table.schema.columns


def test_reason_says_where_the_document_overrules_the_rows(frame):
    assert column_under(frame, "sold", 'base = "real"').reason.startswith("schema.toml asks for a real column")
    assert column_under(frame, "price", 'base = "real"').reason == as_table(frame).schema.columns[0].reason


def test_labels_have_the_order_of_the_document_and_shares_of_the_rows(frame):
    column = column_under(frame, "color", 'base = "category"\nlabels = ["white", "pink", "red"]')
    counts = frame["color"].value_counts()
    total = counts.sum() + 2.0
    assert column.labels == ("white", "pink", "red")
    shares = [(counts["white"] + 0.5) / total, 0.5 / total, (counts["red"] + 0.5) / total, 0.5 / total]
    assert column.frequencies == pytest.approx(shares, rel=1e-12)


def test_labels_of_numbers_and_booleans_may_be_written_as_such(frame):
    assert column_under(frame, "two", 'base = "category"\nlabels = [7, 3.0]').labels == ("7", "3")
    assert column_under(frame, "flag", 'base = "category"\nlabels = [true, false]').labels == ("True", "False")


def test_a_column_without_a_grid_gets_none_from_a_document_about_other_rows(rng):
    first, second = (as_table(pd.DataFrame({"x": rng.normal(size=50)})) for _ in range(2))
    read = document.parse(document.text_of(first.schema), "schema.toml")
    (column,) = as_table(second.to_frame(), schema=read).schema
    assert not column.has_grid
    assert column.resolution == second.schema.columns[0].resolution != first.schema.columns[0].resolution


def test_numbers_of_a_real_column_are_the_documents(frame):
    text = 'base = "real"\nsupport = [-1, 100]\nresolution = 0.5\nlocation = 3\nscale = 2\natoms = [7.0, -1]'
    column = column_under(frame, "price", text)
    assert (column.support, column.resolution, column.location, column.scale) == ((-1.0, 100.0), 0.5, 3.0, 2.0)
    assert column.atoms == (-1.0, 7.0)
    held = [0, (frame["price"] == 7.0).sum()]
    assert column.atom_frequencies == pytest.approx([(n + 0.5) / (sum(held) + 1.0) for n in held])


def test_atoms_of_the_document_are_left_out_of_location(frame):
    value = float(frame["price"].mode()[0])
    column = column_under(frame, "price", f'base = "real"\natoms = [{value}]')
    assert column.location == frame["price"][frame["price"] != value].median()


def test_no_atoms_where_the_document_says_so(frame):
    column = column_under(frame, "gain", 'base = "real"\natoms = []')
    assert (column.atoms, column.atom_frequencies) == ((), ())
    assert "atoms as schema.toml says" in column.reason


def test_support_reaches_the_documents_atoms(frame):
    assert column_under(frame, "price", 'base = "real"\natoms = [-9]').support == (-math.inf, math.inf)


def test_families_of_the_document_are_the_columns(frame):
    assert column_under(frame, "price", 'base = "real"\nfamilies = ["gamma", "normal"]').families == ("gamma", "normal")


def test_missing_cells_hold_a_value_of_the_support():
    frame = pd.DataFrame({"x": [10.5, None, 12.0]})
    table = under(frame, '[column.x]\nbase = "real"\nsupport = [10, 20]\nlocation = 0')
    assert table.values[0, 1] == 10.0


def test_new_rows_are_read_under_the_schema_that_a_document_led_to(frame):
    schema = under(frame, '[column.price]\nbase = "real"\nsupport = [0, 50]').schema
    with pytest.warns(BayesjptWarning, match=r"50\.5 in column 'price' \(first in row 1\)"):
        as_table(pd.DataFrame({"price": [50.5]}), schema=schema)


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ('[column.pryce]\nbase = "real"', ["line 1 of 'schema.toml'", "'pryce'", "one like 'price'"]),
        (
            '[column.color]\nbase = "category"\nlabels = ["red"]',
            ["column 'color' holds 'white' in row ", "line 3 of 'schema.toml' does not list"],
        ),
        (
            '[column.two]\nbase = "category"\nlabels = ["3", "7", "many"]',
            ["line 3 of 'schema.toml'", "'many'", "'two'", "the label of a number"],
        ),
        ('[column.two]\nbase = "category"\nlabels = ["3", "7.0"]', ["line 3 of 'schema.toml'", "'7.0'"]),
        ('[column.flag]\nbase = "category"\nlabels = ["no", "yes"]', ["line 3", "'no'", "the label of a boolean"]),
        ('[column.color]\nbase = "real"', ["line 2 of 'schema.toml' asks for 'real'", "'color' holds", "in row 1"]),
        ('[column.price]\nbase = "integer"', ["line 2 of 'schema.toml' asks for 'integer'", "'price' holds"]),
        (
            '[column.price]\nbase = "real"\n\nsupport = [5.0, inf]',
            ["column 'price' holds", "outside the support that line 4 of 'schema.toml' gives it; expected 5 to inf"],
        ),
        (
            '[column.day]\nbase = "real"\nsupport = [0.0, 17000.0]',
            ["column 'day' holds 2020-", "expected 1970-01-01 to 2016-07-18"],
        ),
        (
            '[column.price]\nbase = "real"\nfamilies = ["gama"]',
            ["line 3 of 'schema.toml' names the likelihood 'gama' for column 'price'", "one like 'gamma'"],
        ),
        (
            '[column.price]\nbase = "real"\nfamilies = ["normal", "poisson"]',
            ["line 3 of 'schema.toml'", "'poisson'", "does not fit its base 'real'", "one of normal, gamma"],
        ),
        (
            '[column.price]\nbase = "real"\natoms = [7.0]\nfamilies = ["atom"]',
            ["line 4 of 'schema.toml' leaves column 'price' its atoms alone"],
        ),
        (
            '[column.change]\nbase = "real"\nfamilies = ["gamma"]',
            ["line 3", "'gamma'", "support -inf to inf", "one of normal"],
        ),
        (
            '[column.color]\nbase = "category"\nother = false\nfamilies = ["ordinal"]',
            ["line 4", "'ordinal'", "leave out other = false"],
        ),
    ],
)
def test_contradiction_between_document_and_rows_names_line_and_remedy(frame, section, words):
    with pytest.raises(SchemaError) as caught:
        under(frame, section)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_column_without_an_observed_cell_is_told_how_to_set_it_aside_in_the_document():
    with pytest.raises(SchemaError, match=r"base = 'excluded' in 'schema\.toml'"):
        under(pd.DataFrame({"x": [None, None], "y": [0.5, 1.5]}), '[column.x]\nbase = "real"')


def test_nothing_left_to_model_suggests_the_documents_bases():
    with pytest.raises(SchemaError, match=r"no column is left.*base = 'integer' in 'schema\.toml'"):
        under(pd.DataFrame({"x": [1, 2, 3]}), '[column.x]\nbase = "excluded"')


def test_kinds_beside_a_document_are_refused(frame):
    with pytest.raises(SchemaError, match="both kinds and schema"):
        as_table(frame, schema=document.parse("", "schema.toml"), kinds={"price": "real"})


def test_schema_of_another_kind_is_refused(frame):
    with pytest.raises(SchemaError, match="schema is a int; expected a Schema, a SchemaDocument, or the path of one"):
        as_table(frame, schema=3)


def test_table_is_refused_beside_a_document(frame):
    with pytest.raises(TableError, match="a Table, whose schema is settled"):
        as_table(as_table(frame), schema=document.parse("", "schema.toml"))


# --- by itself


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("format = 2", ["line 1", "format 2; expected 1"]),
        ('\ncolour = "red"', ["line 2", "unknown key 'colour'", "'column'"]),
        ('\n\n[colum.x]\nbase = "real"', ["line 3", "unknown table 'colum'", "one like 'column'"]),
        ("column = 3", ["line 1", "column is 3", '[column."NAME"]']),
        ("[column]\n\nx = 3", ["line 3", "column 'x' is 3", '[column."x"]']),
        ("[column.x]\n", ["line 1", "column 'x' has no base", "'real'"]),
        ('[column.x]\nbase = "reel"', ["line 2", "base of column 'x' is 'reel'", "one like 'real'"]),
        ("[column.x]\nbase = 3", ["line 2", "is 3", "'category', 'integer', 'real', 'date', 'excluded'"]),
        ('[column.x]\nbase = "real"\n\nresolutoin = 1', ["line 4", "'resolutoin'", "'x'", "one like 'resolution'"]),
        ('[column.a.b]\nbase = "real"', ["line 1", "unknown key 'b' of column 'a'", "Quote", '[column."a.b"]']),
        ('[column.x]\nbase = "real"\nlabels = ["a"]', ["line 3", "labels", "base is 'real'", "base 'category'"]),
        ('[column.x]\nbase = "integer"\natoms = [1]', ["line 3", "atoms", "base is 'integer'", "base 'real'"]),
        ('[column.x]\nbase = "category"\nsupport = [0, 1]', ["line 3", "support", "base 'real' or 'integer'"]),
        ('[column.x]\nbase = "real"\nresolution = 0', ["line 3", "resolution", "is 0", "above 0"]),
        ('[column.x]\nbase = "real"\nresolution = -0.1', ["line 3", "is -0.1", "above 0"]),
        ('[column.x]\nbase = "real"\nresolution = inf', ["line 3", "is inf", "finite"]),
        ('[column.x]\nbase = "real"\nscale = nan', ["line 3", "scale", "is nan"]),
        ('[column.x]\nbase = "real"\nscale = true', ["line 3", "scale", "is true"]),
        ('[column.x]\nbase = "real"\nlocation = "3"', ["line 3", "location", "is '3'", "a number"]),
        ('[column.x]\nbase = "real"\nlocation = 2020-01-01', ["line 3", "location", "a number"]),
        (f'[column.x]\nbase = "real"\nlocation = 1{"0" * 400}', ["line 3", "location", "below 1e308"]),
        ('[column.x]\nbase = "real"\nsupport = [0]', ["line 3", "holds 1 numbers", "two numbers"]),
        ('[column.x]\nbase = "real"\nsupport = 0', ["line 3", "is 0", "two numbers"]),
        ('[column.x]\nbase = "real"\nsupport = [1, 0]', ["line 3", "is [1, 0]", "smaller bound first"]),
        ('[column.x]\nbase = "integer"\nsupport = [0.5, 3]', ["line 3", "whole bounds"]),
        ('[column.x]\nbase = "real"\natoms = [1, 1.0]', ["line 3", "holds 1.0 twice"]),
        ('[column.x]\nbase = "real"\natoms = [inf]', ["line 3", "is inf", "finite"]),
        ('[column.x]\nbase = "real"\natoms = 3', ["line 3", "is 3", "a list of numbers"]),
        (
            '[column.x]\nbase = "real"\natoms = [3]\nsupport = [5, 7]',
            ["line 3", "the atom 3 of column 'x' lies outside", "5 to 7, as line 4 of 'schema.toml' says"],
        ),
        ('[column.x]\nbase = "category"\nlabels = ["a",\n"b", "a"]', ["line 3", "labels", "holds 'a' twice"]),
        ('[column.x]\nbase = "category"\nlabels = []', ["line 3", "empty list"]),
        ('[column.x]\nbase = "category"\nlabels = "a"', ["line 3", "a list of labels"]),
        ('[column.x]\nbase = "category"\nlabels = [["a"]]', ["line 3", "holds ['a']"]),
        ('[column.x]\nbase = "category"\nlabels = ["\\u0000"]', ["line 3", "can be stored"]),
        ('[column.x]\nbase = "real"\nfamilies = []', ["line 3", "empty list"]),
        ('[column.x]\nbase = "real"\nfamilies = "normal"', ["line 3", "a list of names"]),
        ('[column.x]\nbase = "real"\nfamilies = ["normal", "normal"]', ["line 3", "'normal' twice"]),
        ('[column.x]\nbase = "real"\n[column.x]\nbase = "real"', ["line 3", "schema.toml", "expected TOML"]),
        ('[column.x]\nbase = "real"\nbase = "real"', ["line 3"]),
        ("[column.x]\nbase = real", ["line 2", "Invalid value"]),
        ('[column.x]\nbase = "real', ["line 2"]),
        ('[column.x]\nlabels = ["a",\n', ["line 3"]),
        (f"[column.x]\nlocation = {'9' * 5000}", ["cannot be read"]),
        (f"x = {'[' * 5000}{']' * 5000}", ["cannot be read"]),
    ],
)
def test_document_that_is_wrong_by_itself_names_the_line(text, words):
    with pytest.raises(SchemaError) as caught:
        document.parse(text, "schema.toml")
    message = str(caught.value)
    assert "\n" not in message
    assert "'schema.toml'" in message
    for word in words:
        assert word in message


def test_windows_line_ends_and_byte_order_mark_are_read(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_bytes(b'\xef\xbb\xbf[column.x]\r\nbase = "real"\r\nscale = 0\r\n')
    with pytest.raises(SchemaError, match=r"line 3 of 'schema\.toml'"):
        read_schema(path)


def test_document_that_is_not_utf8_names_the_line_and_a_saved_fit_is_told_as_such(tmp_path):
    path = tmp_path / "schema.toml"
    for content, found in (('[column.x]\nbase = "real"\n# Müller'.encode("latin-1"), "line 3"), (b"\x89HDF", "HDF5")):
        path.write_bytes(content)
        with pytest.raises(SchemaError, match=found):
            read_schema(path)


def test_missing_document_and_folder_are_refused(tmp_path):
    with pytest.raises(SchemaError, match="no file"):
        read_schema(tmp_path / "none.toml")
    with pytest.raises(SchemaError, match="cannot be read"):
        read_schema(tmp_path)


def test_writing_into_no_folder_is_refused(frame, tmp_path):
    with pytest.raises(SchemaError, match="cannot be written"):
        as_table(frame).schema.write(tmp_path / "none" / "schema.toml")


def test_written_document_is_commented(frame):
    text = document.text_of(as_table(frame).schema)
    price = text[text.index('[column."price"]') : text.index('[column."sold"]')]
    assert "# numbers, not all whole; recorded to 0.1" in price
    assert '# families = ["normal", "gamma", "lognormal"' in price
    assert "different values from" in price
    assert f"# {frame['color'].isna().sum()} cells missing, 2 labels in use" in text
    assert '[column."name"]\n# identifier or free text' in text
    assert max(map(len, text.splitlines())) <= 120


def test_document_has_a_readable_repr():
    assert repr(document.parse('[column.x]\nbase = "real"', "s.toml")) == "SchemaDocument('s.toml', 1 columns)"
