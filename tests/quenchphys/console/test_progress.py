"""The display of progress: its forecast with a made-up clock, and what it writes in a terminal, a log and nowhere."""

from __future__ import annotations

import io
import re
import time

import pytest

import quenchphys as qp
from quenchphys.console.forecast import Approach, Forecast, analysing, compiling, duration, sampling
from quenchphys.console.progress import Display, LadderMeter, WalkMeter
from quenchphys.console.surfaces import Bar, Log, surface_for


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_slow_machine_stretches_what_is_still_to_come():
    forecast = Forecast([compiling(10), sampling("pilot", 5), compiling(8), sampling("walk", 60), analysing(2)])
    forecast.begin("compiling", 0.0)
    assert forecast.left(0.0) == pytest.approx(85)
    assert forecast.left(4.0) == pytest.approx(81)
    forecast.begin("pilot", 30.0)  # three times as long as expected, which tells nothing about sampling
    assert forecast.left(30.0) == pytest.approx(5 + 3 * 8 + 60 + 2)
    forecast.begin("compiling", 50.0)  # sampling takes four times as long as expected
    assert forecast.left(50.0) == pytest.approx(3 * 8 + 4 * 60 + 2 * 2), "a kind that was not measured: halfway"


def test_the_own_speed_of_a_stage_replaces_the_plan():
    forecast = Forecast([sampling("walk", 10)])
    forecast.begin("walk", 0.0)
    stage = forecast.current
    for share in (0.25, 0.5, 0.9):
        stage.share = share
        now = 100 * share  # it will take 100 seconds, not 10
        assert forecast.left(now) == pytest.approx(100 - now, rel=0.3)
    assert forecast.left(90.0) == pytest.approx(10, rel=0.1)


def test_a_stage_that_takes_too_long_has_something_left():
    forecast = Forecast([compiling(10)])
    forecast.begin("compiling", 0.0)
    assert forecast.left(40.0) == pytest.approx(12)


def test_stages_that_were_skipped_or_not_planned():
    forecast = Forecast([compiling(10), sampling("pilot", 5), compiling(8), sampling("walk", 60)])
    forecast.begin("compiling", 0.0)
    forecast.begin("walk", 10.0)  # everything else was read from files
    assert [stage.name for stage in forecast.stages] == ["compiling", "walk"]
    forecast = Forecast([sampling("pilot", 5), sampling("walk", 60)])
    forecast.begin("pilot", 0.0)
    forecast.begin("pilot", 5.0)  # a second one
    assert [stage.name for stage in forecast.stages] == ["pilot", "pilot", "walk"]
    assert forecast.left(5.0) == pytest.approx(65)


@pytest.mark.parametrize("first", [0, 160])
def test_the_share_of_a_ladder_from_the_distance_to_its_end(first):
    """Levels that come closer at a constant speed, also from the middle of a ladder that is resumed."""
    approach = Approach()
    shares = [approach.share(level, 1000.0 - level) for level in range(first, 1001, 40)]
    assert shares[0] == 0.0
    for level, share in zip(range(first + 40, 1001, 40), shares[1:], strict=False):
        assert share == pytest.approx((level - first) / (1000 - first))


def test_times_as_a_person_says_them():
    said = [duration(seconds) for seconds in (0.4, 59, 60, 130, 601, 7000)]
    assert said == ["0 s", "59 s", "1 min", "2 min 10 s", "10 min", "1 h 57 min"]


def test_the_bar_names_the_stage_and_agrees_with_the_time_left():
    clock = Clock()
    display = Display("coexistence", False, [compiling(10), sampling("pilot", 10)], clock=clock)
    display.stage("compiling")
    clock.now = 9.0
    done, what, words = display.state()
    assert what == "coexistence: compiling" and words == "about 11 s left" and done == pytest.approx(9 / 20)
    clock.now = 40.0
    display.stage("pilot")
    done, what, words = display.state()
    assert what == "coexistence: pilot" and words == "about 10 s left" and done == pytest.approx(0.8)


def test_a_ladder_and_a_walk_are_stages_of_one_display():
    clock = Clock()
    plan = [compiling(1), sampling("pilot", 1), compiling(1), sampling("walk", 1)]
    display = Display("coexistence", False, plan, clock=clock)
    pilot = LadderMeter(display, "pilot")
    pilot.begin()
    names = [display.forecast.current.name]
    for level in (16, 32, 48):
        clock.now += 1
        pilot.update(level, -2.5, float("nan"), 1.0, 80.0 - level)
        names.append(display.forecast.current.name)
    assert names == ["compiling", "pilot", "pilot", "pilot"]
    assert display.forecast.current.share == pytest.approx(0.5)
    assert "nan" not in display.state()[2], "an acceptance that is not known is not shown"
    walk = WalkMeter(display, sweeps=160)
    walk.part(0, 160, "part 1 of 2")
    walk.begin()
    assert display.forecast.current.name == "compiling"
    for part in range(2):
        walk.part(80 * part, 160, f"part {part + 1} of 2")
        walk.begin()  # nothing is compiled for the second part
        for sweep in range(16, 96, 16):
            clock.now += 1
            walk.update(sweep, 0.0, 0.8, float("nan"), 80 - sweep)
            assert display.forecast.current.name == "walk"
    assert display.forecast.current.share == pytest.approx(1.0)
    assert "part 2 of 2, acceptance 0.80" in display.state()[2]


def test_a_terminal_gets_a_bar_and_a_log_gets_lines():
    assert surface_for(False, io.StringIO()) is None
    assert isinstance(surface_for(None, Terminal()), Bar)
    quiet, loud = surface_for(None, io.StringIO()), surface_for(True, io.StringIO())
    assert isinstance(quiet, Log) and quiet.first_after == 60 == quiet.period
    assert isinstance(loud, Log) and loud.first_after == 0 and loud.period == 60


def test_a_line_of_a_log():
    stream = io.StringIO()
    log = Log(stream, at_once=True)
    log.message("pilot: mu2 = 2.29")
    log.draw(0.25, "coexistence: walk", "about 3 min left", elapsed=60.0)
    assert stream.getvalue() == "pilot: mu2 = 2.29\ncoexistence: walk, 25% after 1 min, about 3 min left\n"
    stream.close()
    log.message("nobody reads this")  # and nothing is raised in the thread that draws


def test_a_quench_in_a_terminal(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    ladder = qp.quench(qp.targets.gaussian(2), particles=32, replicas=2, stop=qp.LevelLimit(20))
    assert ladder.levels.sizes["level"] == 20
    shown = re.split("[\r\n]", stream.getvalue())
    assert any("quench: compiling" in line and "left" in line for line in shown)
    assert re.search(r"quench 100%.*in \d+ s", shown[-2] or shown[-1])


def test_drawing_goes_on_while_the_caller_is_busy():
    stream = Terminal()
    display = Display("quench", None, [compiling(10)], stream=stream)
    display.stage("compiling")
    time.sleep(1.3)
    display.close()
    drawn = stream.getvalue()
    assert drawn.count("quench: compiling") >= 2
    time.sleep(0.7)
    assert stream.getvalue() == drawn, "and it ends when the display is closed"
