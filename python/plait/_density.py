"""gaussian_kde: the density of a sample by normal kernels, under SciPy's names.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _plait, lax, random
from plait import numpy as pnp


class gaussian_kde:
    """The density estimated from points: dataset is [n], or [d, n] for vectors, and weights [n].

    The covariance of the kernels is that of the points times factor**2, where bw_method is the
    factor, a function of the estimate, or a rule: 'scott' (the default) or 'silverman'.
    """

    def __init__(self, dataset, bw_method=None, weights=None):
        points = pnp.atleast_2d(pnp.asarray(dataset))
        if not pnp.issubdtype(points.dtype, pnp.floating):
            points = points.astype(pnp.float32)
        if points.shape[1] < 2:
            _plait.fail("ValueError", "gaussian_kde: one point has no density", "give several")
        self.d, self.n = points.shape
        if weights is None:
            weights = pnp.ones(self.n, points.dtype)
        weights = pnp.asarray(weights, points.dtype)
        if weights.shape != (self.n,):
            _plait.fail(
                "ValueError",
                f"gaussian_kde: weights of shape {weights.shape} for {self.n} points",
                "give one weight for each point",
            )
        self.dataset, self.weights = points, weights / weights.sum()
        self.neff = 1 / (self.weights**2).sum()
        if bw_method is None or bw_method == "scott":
            self.factor = self.neff ** (-1.0 / (self.d + 4))
        elif bw_method == "silverman":
            self.factor = (self.neff * (self.d + 2) / 4.0) ** (-1.0 / (self.d + 4))
        elif callable(bw_method):
            self.factor = bw_method(self)
        elif isinstance(bw_method, str):
            _plait.fail(
                "ValueError",
                f"gaussian_kde: bw_method {bw_method!r}",
                "give 'scott', 'silverman', a factor or a function",
            )
        else:
            self.factor = pnp.asarray(bw_method, points.dtype)
        mean = (points * self.weights).sum(1, keepdims=True)
        centred = points - mean
        spread = 1 - (self.weights**2).sum()
        self._data_covariance = (centred * self.weights) @ centred.T / spread
        self.covariance = self._data_covariance * self.factor**2

    @property
    def inv_cov(self):
        """The inverse of the covariance of the kernels."""
        return pnp.linalg.inv(self.covariance)

    def _points(self, points):
        points = pnp.atleast_2d(pnp.asarray(points, self.dataset.dtype))
        if points.shape[0] != self.d and points.shape == (1, self.d):
            points = points.T
        if points.shape[0] != self.d:
            _plait.fail(
                "ValueError",
                f"gaussian_kde: points of {points.shape[0]} elements, and the dataset has {self.d}",
                "give points as columns",
            )
        return points

    def _log_densities(self, points, covariance):
        """The logarithm of each kernel at each point: [n, m]."""
        factor = pnp.linalg.cholesky(covariance)
        solve = lambda x: lax.linalg.triangular_solve(factor, x, left_side=True, lower=True)  # noqa: E731
        between = solve(self.dataset)[:, :, None] - solve(points)[:, None, :]
        norm = pnp.log(pnp.diagonal(factor)).sum() + 0.5 * self.d * pnp.log(2 * pnp.pi)
        return -0.5 * (between**2).sum(0) - norm

    def logpdf(self, x):
        """The logarithm of the density at points, [m] or [d, m]."""
        from plait import nn

        terms = self._log_densities(self._points(x), self.covariance)
        return nn.logsumexp(terms, axis=0, b=self.weights[:, None])

    def pdf(self, x):
        """The density at points, [m] or [d, m]."""
        return pnp.exp(self.logpdf(x))

    evaluate = __call__ = pdf

    def integrate_gaussian(self, mean, cov):
        """The integral of the density times a normal one of this mean and covariance."""
        mean = pnp.reshape(pnp.asarray(mean, self.dataset.dtype), (self.d, 1))
        cov = pnp.reshape(pnp.asarray(cov, self.dataset.dtype), (self.d, self.d))
        kernels = self._log_densities(mean, self.covariance + cov)[:, 0]
        return (self.weights * pnp.exp(kernels)).sum()

    def integrate_box_1d(self, low, high):
        """The probability of an interval, for points that are numbers."""
        from plait.scipy import special

        if self.d != 1:
            _plait.fail(
                "ValueError",
                f"gaussian_kde: integrate_box_1d of vectors of {self.d} elements",
                "give a dataset of numbers",
            )
        width = pnp.sqrt(self.covariance[0, 0])
        above = special.ndtr((high - self.dataset[0]) / width)
        below = special.ndtr((low - self.dataset[0]) / width)
        return (self.weights * (above - below)).sum()

    def integrate_kde(self, other):
        """The integral of the product with another density of points of equal size."""
        terms = other._log_densities(self.dataset, self.covariance + other.covariance)
        return (pnp.exp(terms) * other.weights[:, None] * self.weights).sum()

    def resample(self, key, shape=()):
        """Points drawn from the density: of shape (d, *shape)."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        chosen, noise = random.split(key)
        index = random.choice(chosen, self.n, shape, p=self.weights)
        zeros = pnp.zeros(self.d, self.dataset.dtype)
        steps = random.multivariate_normal(
            noise, zeros, self.covariance, shape, dtype=self.dataset.dtype
        )
        return self.dataset[:, index] + pnp.moveaxis(steps, -1, 0)
