"""Estimators for scikit-learn: classifier, regressor, density, imputer and outlier detector over one fitted posterior.

They take arrays and data frames alike; a frame's columns of texts, dates and missing cells need no preparation.
Columns that say nothing about a population of rows, such as identifiers and free texts, are not used, with a warning.
"""

from __future__ import annotations

import math
import warnings
from numbers import Real
from typing import Any

import numpy as np

try:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        DensityMixin,
        OutlierMixin,
        RegressorMixin,
        TransformerMixin,
    )
    from sklearn.model_selection import StratifiedKFold
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d
except ImportError:
    raise ImportError('bayesjpt.sklearn needs scikit-learn: pip install "bayesjpt[sklearn]"') from None

from bayesjpt import fit as _fit
from bayesjpt.errors import BayesjptWarning, counted, warn
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.density import log_mass
from bayesjpt.queries.impute import MeanImputation, impute_mean
from bayesjpt.queries.predict import prediction
from bayesjpt.queries.some_draws import some_draws
from bayesjpt.sklearn_inputs import FEW_ROWS, columns_of, fractions, free_name, labels, numbers, rows_of, with_spread
from bayesjpt.sklearn_pool import N_EXPERT, N_FOLD, LinearExpert, best_pool, code_of, strength_of_linear
from bayesjpt.structure.base import one_thread
from bayesjpt.structure.jpt import learn_jpt
from bayesjpt.structure.mspn import learn_mspn
from bayesjpt.table.excluded import warn_of_unused
from bayesjpt.table.fill import filled_in
from bayesjpt.table.table import Table, as_table

__all__ = ["CircuitClassifier", "CircuitDensity", "CircuitImputer", "CircuitOutlierDetector", "CircuitRegressor"]

_LEAST_OF_CLASS = 6
"""Rows of the rarest class from which on some are held out."""
_TREES = ((0.02, 0.6), (0.01, 0.4))
"""Of each forest: least share of the rows in a leaf, share of the features that a tree sees."""
_LEAST_LEAF = 5
_LEAST_PROBABILITY = 1e-4
"""What an expert says at least: more certain none can be of rows that it has not seen."""


class _Circuit(BaseEstimator):
    """What the estimators have in common: parameters, rows as tables, and the fit."""

    post_: Any
    n_features_in_: int
    column_names_: list[str] | None
    target_: str

    def __init__(
        self, *, n_structures: int = 8, draws: int = 8, tune: int = 20, cores: int | None = None, random_state=None
    ):
        self.n_structures = n_structures
        self.draws = draws
        self.tune = tune
        self.cores = cores
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _columns(self, X, *, reset: bool) -> dict[str, Any]:
        """Return the columns of features by name; those of an array are numbered.

        Where the fit had names and X has none, or the other way round, columns are taken by position, as scikit-learn
        does with a warning.
        """
        names, columns = columns_of(self, X, reset=reset)
        if reset:
            self.column_names_ = names
        elif names is None or self.column_names_ is None:
            names = self.column_names_
        if names is None:
            names = [f"x{position}" for position in range(len(columns))]
        return dict(zip(names, columns, strict=True))

    def _train(self, columns: dict[str, Any], kinds: dict[str, str] | None = None) -> Table:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "constant columns", BayesjptWarning)
            table = as_table(columns, kinds=fractions(columns) | (kinds or {}))
        warn_of_unused(table.schema.set_aside)
        return table

    def _rows(self, X) -> Table:
        """Return new rows under the schema of the fit."""
        check_is_fitted(self)
        return self._read(self._columns(X, reset=False))

    def _read(self, columns: dict[str, Any]) -> Table:
        columns |= {self.target_: np.full(rows_of(columns), np.nan)} if hasattr(self, "target_") else {}
        return as_table(columns, schema=self.post_.schema, outside="missing")

    def _posterior(self, table: Table, learner, seed: int):
        options = {"draws": self.draws, "tune": self.tune, "cores": self.cores, "seed": seed, "progress": False}
        return _fit(table, learner, n_structures=self.n_structures, chains=1, **options)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))


def _tree_learner(target: str):
    """Return the learner of a joint tree whose splits are judged by the target alone: discriminative learning."""

    def _tree_of(table: Table, rng, progress=None):
        others = [name for name in table.names if name != target]
        least = max(_LEAST_LEAF, round(0.02 * table.n_row))
        return learn_jpt(table, rng, targets=[target], features=others or None, min_rows=least, progress=progress)

    return _tree_of


def _forest(table: Table, target: str, n: int, seed: int) -> list[list[Posterior]]:
    """Return estimates of discriminative joint trees, n of each kind, from rows drawn anew and some of the features."""
    rng = np.random.default_rng(seed)
    others = [name for name in table.names if name != target]
    forests = []
    for leaf_share, feature_share in _TREES:
        trees = []
        for _ in range(n):
            rows = rng.choice(table.n_row, table.n_row)
            chosen = rng.permutation(len(others))[: math.ceil(feature_share * len(others))]
            least = max(_LEAST_LEAF, round(leaf_share * table.n_row))
            options = {"targets": [target], "features": [others[k] for k in chosen] or None, "min_rows": least}
            trees.append(Posterior.from_circuit(learn_jpt(table.take(rows), rng, **options), table.schema))
        forests.append(trees)
    return forests


class CircuitClassifier(ClassifierMixin, _Circuit):
    """Classes by their probability given a row's other cells.

    Four experts are heard: a posterior of mixtures learned from all columns alike, two forests of joint trees whose
    splits are judged by the class, each tree learned from rows drawn anew and some of the features, and a generalised
    linear model. Their log probabilities of rows that they were not fitted to are weighed by a logistic regression, a
    logarithmic opinion pool, or their probabilities by an average, whichever predicts these rows better.

    Parameters
    ----------
    n_structures : int
        Structures that are averaged; each forest has twice as many trees.
    draws, tune : int
        Kept and discarded sweeps of each structure.
    cores : int, optional
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_ : array (n_class,)
    post_ : Posterior
        Of the mixtures; the class is its column `target_`.
    target_ : str
        ``target``, or ``target_2`` and so on where a feature is called so.
    forests_ : list of lists of Posterior
        Estimates of the trees.
    linear_ : object or None
        The linear model; None where there is one class, or no feature.
    pool_ : LogisticRegression, AveragePool or None
        From log probabilities to the answer; None where rows are too few to hold some out, and experts are averaged.

    References
    ----------
    Genest and Zidek (1986). Combining Probability Distributions: A Critique and an Annotated Bibliography.
    Statistical Science 1(1). Breiman (2001). Random Forests. Machine Learning 45.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(1).normal(size=(80, 2)) + np.repeat([[0.0], [5.0]], 40, axis=0)
    >>> model = CircuitClassifier(n_structures=2, random_state=1).fit(X, np.repeat(["a", "b"], 40))
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]]).tolist()
    ['a', 'b']
    """

    def fit(self, X, y):
        """Return the estimator, fitted to features (n_row, n_column) and classes (n_row,)."""
        columns = self._columns(X, reset=True)
        y = column_or_1d(labels(y, rows_of(columns)), warn=True)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.target_ = free_name(columns)
        seed = self._seed()
        columns[self.target_] = np.array([f"class {code}" for code in codes], object)
        table = self._train(columns, {self.target_: "category"})
        with one_thread():  # many small regressions: BLAS would spin between them
            strength = strength_of_linear(table, self.target_, codes)
            self.pool_ = self._pool(table, codes, seed, strength)
            self.post_, *self.forests_, self.linear_ = self._experts(table, seed, strength)
        return self

    def _experts(self, table: Table, seed: int, strength: float | None) -> tuple[Any, ...]:
        """Return a posterior of mixtures, forests, and a linear model where there is one."""
        forests = _forest(table, self.target_, 2 * self.n_structures, seed)
        linear = None if strength is None else LinearExpert(table, self.target_, strength)
        return self._posterior(table, learn_mspn, seed), *forests, linear

    def _pool(self, table: Table, codes: np.ndarray, seed: int, strength: float | None) -> Any:
        """Return what weighs the experts, from what they say of rows that they were not fitted to."""
        counts = np.bincount(codes)
        if strength is None or counts.min() < _LEAST_OF_CLASS:
            return None
        said = np.empty((len(codes), N_EXPERT * len(counts)))
        folds = StratifiedKFold(N_FOLD, shuffle=True, random_state=seed)
        for kept, held in folds.split(codes, codes):
            experts = self._experts(table.take(kept), seed, strength)
            said[held] = self._said(experts, table.take(held), len(counts))
        return best_pool(said, codes)

    def _said(self, experts: tuple[Any, ...], rows: Table, n_class: int) -> np.ndarray:
        """Return log probabilities of classes by each expert, float64 (n_row, n_expert * n_class), nats."""
        found = []
        for expert in experts:
            if expert is None:
                continue
            if isinstance(expert, LinearExpert):
                mean = expert.probabilities(rows, n_class)
            else:
                trees = expert if isinstance(expert, list) else [expert]
                mean = np.mean([_probabilities(post, rows, self.target_, n_class) for post in trees], axis=0)
            found.append(np.log(np.maximum(mean, _LEAST_PROBABILITY)))
        return np.hstack(found)

    def predict_proba(self, X) -> np.ndarray:
        """Return the probability of each class, float64 (n_row, n_class)."""
        rows = self._rows(X)
        said = self._said((self.post_, *self.forests_, self.linear_), rows, len(self.classes_))
        if self.pool_ is not None:
            return self.pool_.predict_proba(said)
        each = np.exp(said).reshape(rows.n_row, -1, len(self.classes_)).mean(axis=1)
        return each / each.sum(axis=1, keepdims=True)

    def predict(self, X) -> np.ndarray:
        """Return the most probable class of each row."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[best]


def _probabilities(post, rows: Table, target: str, n_class: int) -> np.ndarray:
    """Return float64 (n_row, n_class): probabilities of the codes of classes."""
    found = prediction(post, target, rows, max_draws=None)
    out = np.zeros((rows.n_row, n_class))
    out[:, [code_of(name) for name in found.names]] = found.values
    return out


class CircuitRegressor(RegressorMixin, _Circuit):
    """A number by its expectation given a row's other cells; `predict_interval` tells how far it may lie from it.

    Parameters are those of `CircuitClassifier`; ``post_`` is the posterior, whose column `target_` is predicted. Fewer
    than five rows say next to nothing of how far numbers lie apart, of which a warning tells; where they all hold one
    number, its size is taken for a standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> model = CircuitRegressor(n_structures=2, random_state=1).fit(X, 10.0 * X[:, 0])
    >>> bool(model.score(X, 10.0 * X[:, 0]) > 0.8)
    True
    """

    def fit(self, X, y):
        """Return the estimator, fitted to features (n_row, n_column) and numbers (n_row,)."""
        columns = self._columns(X, reset=True)
        y = numbers(y, rows_of(columns))
        self.target_ = free_name(columns)
        table = with_spread(self._train({**columns, self.target_: y}, {self.target_: "real"}), self.target_)
        if table.n_row < FEW_ROWS:
            warn(f"{counted(table.n_row, 'row')}: below {FEW_ROWS} intervals of predicted numbers are far too narrow")
        tree = _tree_learner(self.target_)
        self.post_ = self._posterior(table, [learn_mspn, tree] if self.n_structures > 1 else tree, self._seed())
        return self

    def predict(self, X) -> np.ndarray:
        """Return expectations, float64 (n_row,)."""
        return self._numbers(X, 0.9)[:, 0]

    def predict_interval(self, X, interval: float = 0.9) -> np.ndarray:
        """Return float64 (n_row, 2): ends between which the number lies with some probability."""
        return self._numbers(X, interval)[:, 1:]

    def _numbers(self, X, interval: float) -> np.ndarray:
        rows = self._rows(X)  # first: it raises for an estimator without a posterior
        return prediction(self.post_, self.target_, rows, interval=interval, max_draws=None).values


class CircuitDensity(DensityMixin, _Circuit):
    """The joint distribution of all columns.

    Parameters are those of `CircuitClassifier`; ``post_`` is the posterior.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(1).normal(size=(200, 2))
    >>> model = CircuitDensity(n_structures=2, random_state=1).fit(X)
    >>> near, far = model.score_samples([[0.0, 0.0], [5.0, 5.0]])
    >>> bool(near > far), model.sample(3, random_state=1).shape
    (True, (3, 2))
    """

    def fit(self, X, y=None):
        """Return the estimator, fitted to rows (n_row, n_column)."""
        table = self._train(self._columns(X, reset=True))
        self.post_ = self._posterior(table, "mspn", self._seed())
        return self

    def score_samples(self, X) -> np.ndarray:
        """Return log probabilities of what is recorded in each row, to its resolution, float64 (n_row,), nats."""
        rows = self._rows(X)  # first: it raises for an estimator without a posterior
        found = log_mass(self.post_, rows).values
        flat = found.reshape(-1, found.shape[-1])
        return np.logaddexp.reduce(flat, axis=0) - np.log(flat.shape[0])

    def score(self, X, y=None) -> float:
        """Return the sum of `score_samples`."""
        return float(self.score_samples(X).sum())

    def sample(self, n_samples: int = 1, random_state=None):
        """Return rows drawn from the distribution, rounded as those of fit were.

        An array (n_samples, n_column), or a frame if columns have names.
        """
        check_is_fitted(self)
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        frame = self.post_.sample(n_samples, rng=seed).to_frame()
        return frame if hasattr(self, "feature_names_in_") else frame.to_numpy()


class CircuitOutlierDetector(OutlierMixin, CircuitDensity):
    """Rows that are improbable under the joint distribution.

    Parameters
    ----------
    contamination : float
        Share of the training rows that are outliers, in (0, 0.5].
    n_structures, draws, tune, cores, random_state : as in `CircuitClassifier`

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(1).normal(size=(200, 2))
    >>> CircuitOutlierDetector(n_structures=2, random_state=1).fit(X).predict([[0.0, 0.0], [9.0, 9.0]]).tolist()
    [1, -1]
    """

    def __init__(
        self,
        *,
        contamination: float = 0.1,
        n_structures: int = 8,
        draws: int = 8,
        tune: int = 20,
        cores: int | None = None,
        random_state=None,
    ):
        super().__init__(n_structures=n_structures, draws=draws, tune=tune, cores=cores, random_state=random_state)
        self.contamination = contamination

    def fit(self, X, y=None):
        """Return the estimator, fitted to rows (n_row, n_column)."""
        # a share alone: no density is low by itself, so "auto" would have no meaning
        if not isinstance(self.contamination, Real) or not 0.0 < self.contamination <= 0.5:
            raise ValueError(f"contamination = {self.contamination!r}; expected a share above 0, and 0.5 at most")
        super().fit(X)
        self.offset_ = float(np.percentile(self.score_samples(X), 100.0 * self.contamination))
        return self

    def decision_function(self, X) -> np.ndarray:
        """Return `score_samples` above the threshold: negative for outliers."""
        scores = self.score_samples(X)
        return scores - self.offset_

    def predict(self, X) -> np.ndarray:
        """Return 1 for rows inside, and -1 for outliers."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)


def _expectations(found: MeanImputation) -> dict[str, np.ndarray]:
    """Return the expectation, float64 (n_row,), of each column of numbers; before any rounding."""
    means, schema = found.plain_cells["expectation"], found.table.schema
    return {column.name: means[:, number] for number, column in enumerate(schema) if column.base != "category"}


class CircuitImputer(TransformerMixin, _Circuit):
    """Missing cells by their expectation, or most probable label, given the row's others.

    Parameters are those of `CircuitClassifier`; ``post_`` is the posterior. Columns that are not modelled stay as they
    are. Columns of floats that are numbers get expectations before any rounding, also where all recorded numbers are
    whole; columns of other dtypes get values that they can hold: integers, dates, labels.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.linspace(0.0, 1.0, 200)[:, None], 2, axis=1)
    >>> X[3, 1] = np.nan
    >>> filled = CircuitImputer(n_structures=2, random_state=1).fit_transform(X)
    >>> bool(abs(filled[3, 1] - X[3, 0]) < 0.2), filled[4].tolist() == X[4].tolist()
    (True, True)
    """

    def fit(self, X, y=None):
        """Return the estimator, fitted to rows (n_row, n_column)."""
        table = self._train(self._columns(X, reset=True))
        self.post_ = self._posterior(table, "mspn", self._seed())
        return self

    def transform(self, X) -> Any:
        """Return the rows completed: an array, or a data frame of the kind given."""
        check_is_fitted(self)
        columns = self._columns(X, reset=False)
        names, rows = list(columns), self._read(columns)
        found = impute_mean(some_draws(self.post_, None)[1], rows)
        missing, means = dict(zip(rows.names, ~rows.observed, strict=True)), _expectations(found)
        if hasattr(X, "columns"):
            return filled_in(X, names, missing, found.table, means)
        filled = found.table.to_frame()
        array = np.column_stack(list(columns.values()))
        array = array.astype(np.float64) if array.dtype.kind in "iubf" else array
        for position, name in enumerate(names):
            if name in missing:
                expected = array.dtype.kind == "f" and name in means
                cells = means[name] if expected else filled[name].to_numpy()
                array[missing[name], position] = cells[missing[name]]
        return array

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        """Return the names of the columns."""
        check_is_fitted(self)
        if input_features is not None:
            return np.asarray(input_features, object)
        names = getattr(self, "feature_names_in_", [f"x{position}" for position in range(self.n_features_in_)])
        return np.asarray(names, object)
