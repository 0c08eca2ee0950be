"""A fit is not resumed with other code than it was begun with: of this package, of families, learners and options."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.code_hash import hash_of
from bayesjpt.errors import CheckpointError
from bayesjpt.families import registry

FEW = {"seed": 5, "draws": 2, "tune": 1, "chains": 1, "cores": 1, "progress": False}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    size = rng.gamma(3.0, 1.0, 60).round(2)
    return bj.as_table(pd.DataFrame({"size": size, "twice": (2.0 * size + rng.normal(0.0, 0.3, 60)).round(2)}))


def of_clusters(least):
    def learner(table, rng, **_options):
        return bj.learn_mspn(table, rng, min_rows=least)

    return learner


def of_columns():
    def learner(table, rng, **_options):
        return bj.learn_mspn(table, rng, min_rows=table.n_row)

    return learner


def refused(table, path, words, *learner, **options):
    with pytest.raises(CheckpointError, match=words):
        bj.fit(table, *learner, checkpoint=path, resume=True, **FEW | options)


@pytest.mark.parametrize("n_structures", [1, 2])
def test_a_learner_of_your_own_that_was_edited_is_told(table, tmp_path, n_structures):
    many = {"n_structures": n_structures, "checkpoint": tmp_path / "fit"}
    bj.fit(table, of_clusters(20), **many, **FEW)
    for edited in (of_clusters(30), of_columns()):
        refused(table, tmp_path / "fit", "another version of the learner 'learner'", edited, n_structures=n_structures)
    bj.fit(table, of_clusters(20), resume=True, **many, **FEW)


def test_options_that_words_do_not_tell_apart_are_compared(table, tmp_path):
    rows = np.zeros(5_000)
    changed = rows.copy()
    changed[2_500] = 1.0

    def options(offset, rows):
        return {"choose": lambda x: x + offset, "rows": rows, "name": object(), "n_structures": 1}

    learner = of_clusters(20)
    bj.fit(table, learner, checkpoint=tmp_path / "fit", **FEW | options(1, rows))
    refused(table, tmp_path / "fit", "another version of the option choose", learner, **options(2, rows))
    refused(table, tmp_path / "fit", "another version of the option rows", learner, **options(1, changed))
    bj.fit(table, learner, checkpoint=tmp_path / "fit", resume=True, **FEW | options(1, rows.copy()))


def test_another_version_of_any_file_of_this_package_is_told(table, tmp_path, monkeypatch):
    bj.fit(table, n_structures=1, checkpoint=tmp_path / "fit", **FEW)
    monkeypatch.setattr("bayesjpt.sampler.facts.package_hash", lambda: "0" * 64)
    refused(table, tmp_path / "fit", r"another version of bayesjpt \(.*, now 0000", n_structures=1)


def one(column, start):
    return np.ones(4)


def two(column, start):
    return 2.0 * np.ones(4)


def own_family(name, prior=one):
    """Return a family that fits all columns of numbers, and takes part only where it is named."""
    return replace(registry.family("normal"), name=name, by_name=True, priors={"default": prior})


@pytest.mark.parametrize(
    ("families", "words"),
    [
        ([own_family("first", two), own_family("second")], "version of the family 'first'"),
        ([own_family("first")], "version of the family 'second'"),
        ([own_family("second"), own_family("first")], "version of the list of families of your own"),
    ],
)
def test_a_family_of_your_own_that_was_edited_is_told(table, tmp_path, monkeypatch, families, words):
    built_in = registry.FAMILIES
    monkeypatch.setattr(registry, "family_hash", lambda name: hash_of(registry.family(name)))
    monkeypatch.setattr(registry, "FAMILIES", [*built_in, own_family("first"), own_family("second")])
    bj.fit(table, n_structures=1, checkpoint=tmp_path / "fit", **FEW)
    monkeypatch.setattr(registry, "FAMILIES", [*built_in, *families])
    refused(table, tmp_path / "fit", words, n_structures=1)


def test_a_family_that_no_column_is_offered_may_be_edited(table, tmp_path, monkeypatch):
    built_in = registry.FAMILIES
    for bases in (("real", "integer"), ("category",)):
        named = {} if bases == ("category",) else {"families": ["normal"]}
        monkeypatch.setattr(registry, "family_hash", lambda name: hash_of(registry.family(name)))
        for prior, resume in ((one, False), (two, True)):
            family = replace(own_family("first", prior), bases=bases)
            monkeypatch.setattr(registry, "FAMILIES", [*built_in, family])
            path = tmp_path / bases[0]
            bj.fit(table, n_structures=1, checkpoint=path, resume=resume, **named, **FEW)
