"""What holds for every task."""

import battery
import pytest

import algoscope as ag
from algoscope import testing

EVERY = [*battery.TASKS, *battery.SEARCHES, *battery.STREAMS]


@pytest.mark.parametrize("task", EVERY, ids=str)
def test_battery(task):
    testing.check_task(task)
    battery.check_wrong_numbers(task)


def test_every_task_is_in_the_battery():
    classes = [getattr(ag.tasks, name) for name in ag.tasks.__all__ if name != "Task"]
    assert {type(task) for task in EVERY} == set(classes)
