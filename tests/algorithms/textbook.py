"""The iterations as a textbook writes them: plain numpy loops on one prefix, X [t, d] and y [t], independent of
algoscope.

Each returns the weights after 0, 1, …, `steps` steps. They work in whatever arithmetic the arrays come in: float64,
numpy's longdouble, or exact numbers (mpmath) in arrays of objects.
"""

import mpmath
import numpy as np

Array = np.ndarray


def spectrum(x: Array) -> tuple[float, float]:
    """The smallest nonzero and the largest eigenvalue of XᵀX."""
    values = np.linalg.svd(x.astype(float), compute_uv=False) ** 2
    kept = values[values > 1e-20 * values.max()] if values.size else values
    return (float(kept.min()), float(kept.max())) if kept.size else (1.0, 1.0)


def gradient_descent(x: Array, y: Array, steps: int, rate: float | str, start: Array | None = None, ridge=0.0):
    low, high = spectrum(x)
    eta = {"best": 2 / (high + low), "safe": 1 / high}[rate] if isinstance(rate, str) else rate
    matrix, target = x.T @ x + ridge * np.eye(x.shape[1]), x.T @ y
    w = np.zeros(x.shape[1], dtype=x.dtype) if start is None else start
    iterates = [w]
    for _ in range(steps):
        w = w - eta * (matrix @ w - target)
        iterates.append(w)
    return iterates


def preconditioned_gradient_descent(x: Array, y: Array, steps: int, preconditioner: Array, rate: float):
    w = np.zeros(x.shape[1], dtype=x.dtype)
    iterates = [w]
    for _ in range(steps):
        w = w - rate * preconditioner @ (x.T @ (x @ w) - x.T @ y)
        iterates.append(w)
    return iterates


def heavy_ball(x: Array, y: Array, steps: int):
    low, high = (np.sqrt(end) for end in spectrum(x))
    eta, beta = 4 / (high + low) ** 2, ((high - low) / (high + low)) ** 2
    w = before = np.zeros(x.shape[1], dtype=x.dtype)
    iterates = [w]
    for _ in range(steps):
        w, before = w - eta * (x.T @ (x @ w) - x.T @ y) + beta * (w - before), w
        iterates.append(w)
    return iterates


def nesterov(x: Array, y: Array, steps: int):
    low, high = spectrum(x)
    beta = (np.sqrt(high / low) - 1) / (np.sqrt(high / low) + 1)
    w = before = np.zeros(x.shape[1], dtype=x.dtype)
    iterates = [w]
    for _ in range(steps):
        ahead = w + beta * (w - before)
        w, before = ahead - (x.T @ (x @ ahead) - x.T @ y) / high, w
        iterates.append(w)
    return iterates


def chebyshev(x: Array, y: Array, steps: int):
    """Three-term recursion (Saad, Iterative Methods, algorithm 12.1)."""
    low, high = spectrum(x)
    center, half = (high + low) / 2, max((high - low) / 2, 1e-15 * high)
    sigma = center / half
    w = np.zeros(x.shape[1], dtype=x.dtype)
    residual = x.T @ y
    rho, direction = 1 / sigma, residual / center
    iterates = [w]
    for _ in range(steps):
        w = w + direction
        iterates.append(w)
        residual = residual - x.T @ (x @ direction)
        rho, before = 1 / (2 * sigma - rho), rho
        direction = rho * before * direction + 2 * rho / half * residual
    return iterates


def gradient_descent_plus_plus(x: Array, y: Array, queries: Array, steps: int, rate: float, transform: float):
    """Predictions at the queries: each layer moves the targets by a gradient step and the data by (I − γXᵀX)."""
    predictions = np.zeros(len(queries), dtype=x.dtype)
    traces = [predictions]
    for _ in range(steps):
        gradient = x.T @ y
        matrix = np.eye(x.shape[1]) - transform * (x.T @ x)
        predictions = predictions + rate * queries @ gradient
        y = y - rate * x @ gradient
        x, queries = x @ matrix, queries @ matrix
        traces.append(predictions)
    return traces


def newton(x: Array, y: Array, steps: int, start: str, ridge: float = 0.0, order: int = 2):
    """Of third order it is Halley's."""
    one = np.eye(x.shape[1])
    s = x.T @ x + ridge * one
    square = s @ s.T
    above, norm = start.split("/")
    if norm == "frobenius":
        size = np.sqrt((square * square).sum())
    elif square.dtype == object:
        size = max(mpmath.eigsy(mpmath.matrix(square.tolist()), eigvals_only=True))
    else:
        size = np.linalg.norm(square.astype(float), 2)
    alpha = float(above) / (size or 1.0)
    m = alpha * s
    iterates = [m @ (x.T @ y)]
    for _ in range(steps):
        m = 2 * m - m @ s @ m if order == 2 else m @ (3 * one - s @ m @ (3 * one - s @ m))
        iterates.append(m @ (x.T @ y))
    return iterates


def conjugate_gradients(x: Array, y: Array, steps: int, ridge: float = 0.0):
    """Also returns the size of each residual, relative to the first."""
    s, b = x.T @ x + ridge * np.eye(x.shape[1]), x.T @ y
    w, r = b * 0, b
    p, squared = r, r @ r
    iterates, sizes, first = [w], [1.0], squared
    for _ in range(steps):
        if squared == 0 or sizes[-1] < 1e-25:
            iterates.append(w)
            sizes.append(0.0)
            continue
        length = squared / (p @ s @ p)
        w, r = w + length * p, r - length * (s @ p)
        squared, before = r @ r, squared
        p = r + squared / before * p
        iterates.append(w)
        sizes.append(float(squared / first) ** 0.5)
    return iterates, sizes


def steepest_descent(x: Array, y: Array, steps: int):
    """Also returns the size of each residual, relative to the first."""
    s, b = x.T @ x, x.T @ y
    w, iterates, sizes = b * 0, [b * 0], [1.0]
    for _ in range(steps):
        r = b - s @ w
        if r @ r > 0:
            w = w + (r @ r) / (r @ s @ r) * r
        iterates.append(w)
        sizes.append(_relative(b - s @ w, b))
    return iterates, sizes


def barzilai_borwein(x: Array, y: Array, steps: int):
    """BB1, from the last move and the change of the gradient; also returns the relative size of each residual."""
    s, b = x.T @ x, x.T @ y
    w, gradient, iterates, sizes = b * 0, -b, [b * 0], [1.0]
    rate = (b @ b) / (b @ s @ b) if b @ b > 0 else 0
    for _ in range(steps):
        moved = w - rate * gradient
        change = (s @ moved - b) - gradient
        if (moved - w) @ change > 0:
            rate = ((moved - w) @ (moved - w)) / ((moved - w) @ change)
        w, gradient = moved, gradient + change
        iterates.append(w)
        sizes.append(_relative(gradient, b))
    return iterates, sizes


def _relative(r: Array, first: Array) -> float:
    return float(r @ r / (first @ first)) ** 0.5 if first @ first > 0 else 0.0


def ista(x: Array, y: Array, steps: int, penalty: float):
    """Coordinate by coordinate: a gradient step, then toward zero by the penalty, and no farther."""
    rate = 1 / spectrum(x)[1]
    w = np.zeros(x.shape[1], dtype=x.dtype)
    iterates = [w]
    for _ in range(steps):
        moved = w - rate * (x.T @ (x @ w) - x.T @ y)
        shrunk = [a - rate * penalty if a > 0 else a + rate * penalty for a in moved]
        w = np.array([b if a * b > 0 else 0 for a, b in zip(moved, shrunk, strict=True)], dtype=x.dtype)
        iterates.append(w)
    return iterates


def kaczmarz(x: Array, y: Array, sweeps: int):
    w = np.zeros(x.shape[1], dtype=x.dtype)
    iterates = [w]
    for _ in range(sweeps):
        for example, target in zip(x, y, strict=True):
            w = w - (example @ w - target) / (example @ example) * example
        iterates.append(w)
    return iterates


def bfgs(x: Array, y: Array, steps: int):
    """BFGS from H = I with exact line search on the squared error (Nocedal and Wright, chapter 6)."""
    s, w, h = x.T @ x, x.T @ y * 0, np.eye(x.shape[1])
    gradient = s @ w - x.T @ y
    iterates = [w]
    for _ in range(steps):
        direction = -h @ gradient
        length = -(gradient @ direction) / (direction @ s @ direction)
        move, change = length * direction, length * (s @ direction)
        w, gradient = w + move, gradient + change
        rho = 1 / (change @ move)
        left = np.eye(x.shape[1]) - rho * np.outer(move, change)
        h = left @ h @ left.T + rho * np.outer(move, move)
        iterates.append(w)
    return iterates


def lbfgs(x: Array, y: Array, steps: int, memory: int):
    """L-BFGS with exact line search: the two-loop recursion (Nocedal and Wright, algorithm 7.4), H₀ = I."""
    s, w = x.T @ x, x.T @ y * 0
    gradient = s @ w - x.T @ y
    iterates, pairs = [w], []
    for _ in range(steps):
        direction, alphas = gradient, []
        for move, change in reversed(pairs):
            alphas.append((move @ direction) / (change @ move))
            direction = direction - alphas[-1] * change
        for (move, change), alpha in zip(pairs, reversed(alphas), strict=True):
            direction = direction + (alpha - (change @ direction) / (change @ move)) * move
        length = (gradient @ direction) / (direction @ s @ direction)
        move, change = -length * direction, -length * (s @ direction)
        w, gradient = w + move, gradient + change
        pairs = [*pairs, (move, change)][-memory:]
        iterates.append(w)
    return iterates


def online_gradient_descent(x: Array, y: Array, rate: float | None):
    """The weights after 0, 1, …, t examples."""
    w = np.zeros(x.shape[1], dtype=x.dtype)
    iterates = [w]
    for example, target in zip(x, y, strict=True):
        w = w - (rate or 1 / (example @ example)) * (example @ w - target) * example
        iterates.append(w)
    return iterates
