import pytest
import torch

from algoscope.tasks import LinearRegression
from algoscope.trace import Prompts, Trace


@pytest.fixture
def prompts() -> Prompts:
    return LinearRegression(dim=2, examples=3).sample(4, seed=0)


def test_normalized_error_of_predicting_zero_is_one():
    prompts = LinearRegression(dim=2, examples=3, noise=1.0).sample(50_000, seed=0)
    trace = Trace("zero", torch.zeros(1, *prompts.y.shape), (0,), prompts)
    torch.testing.assert_close(trace.normalized_error(), torch.ones(1, 4, dtype=torch.float64), rtol=0.05, atol=0)


def test_normalized_error_without_a_stated_power_uses_the_targets():
    y = torch.tensor([[1.0, 2.0], [2.0, 1.0]])
    trace = Trace("half", y[None] / 2, (0,), Prompts(torch.ones(2, 2, 1), y))
    torch.testing.assert_close(trace.normalized_error(), torch.full((1, 2), 0.25, dtype=torch.float64))


def test_select_keeps_the_named_stages(prompts):
    values = torch.arange(3.0)[:, None, None].expand(3, *prompts.y.shape)
    chosen = Trace("count", values, (0, 5, 9), prompts).select([9, 0])
    assert chosen.stages == (9, 0)
    assert chosen.values[:, 0, 0].tolist() == [2.0, 0.0]
    with pytest.raises(ValueError, match=r"stages must be among \[0, 5, 9\], got \[7\]"):
        Trace("count", values, (0, 5, 9), prompts).select([7])


def test_prompts_are_the_same_when_their_numbers_are(prompts):
    assert prompts.same_as(Prompts(prompts.x.clone(), prompts.y.clone()))
    assert not prompts.same_as(Prompts(prompts.x[:2], prompts.y[:2]))
    assert not prompts.same_as(Prompts(prompts.x, prompts.y + 1e-9))


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (torch.full((1, 2, 3), torch.nan), torch.zeros(1, 2), "x must hold finite numbers"),
        (torch.zeros(1, 2, 3), torch.full((1, 2), torch.inf), "y must hold finite numbers"),
        (torch.zeros(2, 3), torch.zeros(2, 3), r"x must be \[batch, points, dim\]"),
        (torch.zeros(1, 2, 3), torch.zeros(1, 3), "x and y must agree"),
        (torch.zeros(0, 2, 3), torch.zeros(0, 2), r"x must be \[batch, points, dim\]"),
        (torch.zeros(1, 2, 0), torch.zeros(1, 2), r"x must be \[batch, points, dim\]"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_prompts_are_named(x, y, message):
    with pytest.raises(ValueError, match=message):
        Prompts(x, y)


def test_bad_noise_and_power_are_named():
    with pytest.raises(ValueError, match="noise must be a finite number >= 0"):
        Prompts(torch.zeros(1, 2, 3), torch.zeros(1, 2), noise=-1.0)
    with pytest.raises(ValueError, match="power must be a finite number > 0"):
        Prompts(torch.zeros(1, 2, 3), torch.zeros(1, 2), power=0.0)
    with pytest.raises(ValueError, match="y is zero everywhere"):
        Prompts(torch.zeros(1, 2, 3), torch.zeros(1, 2)).normalizer()


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_traces_are_named(prompts):
    with pytest.raises(ValueError, match=r"weights must be \[1, 4, 4, 2\], got \[1, 4, 4, 1\]"):
        Trace("narrow", torch.zeros(1, 4, 4), (0,), prompts, weights=torch.zeros(1, 4, 4, 1))
    with pytest.raises(ValueError, match=r"converged must be \[1, 4, 4\], got \[1\]"):
        Trace("short", torch.zeros(1, 4, 4), (0,), prompts, converged=torch.ones(1, dtype=torch.bool))
    with pytest.raises(ValueError, match="values must be"):
        Trace("short", torch.zeros(1, 4, 3), (0,), prompts)
    with pytest.raises(ValueError, match="stages must name each of the 2 stages"):
        Trace("unnamed", torch.zeros(2, 4, 4), (0,), prompts)
    with pytest.raises(ValueError, match="stages must have different names"):
        Trace("twins", torch.zeros(2, 4, 4), (0, 0), prompts)
