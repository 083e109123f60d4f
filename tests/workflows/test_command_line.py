"""The command line as a new user meets it."""

from __future__ import annotations

import inspect
import io
import json
import signal
import subprocess
import sys
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

import lattices
import quenchphys as qp
import workflows
from tests.support.pages import check_in_browser, check_page
from workflows import defaults
from workflows.command_line import main
from workflows.commands import all_commands
from workflows.results import RESULTS, draw

QUICK = ["--L", "4", "--quick", "--no-progress"]
POINT = ["coexistence", "--bracket", "2.2", "2.5", *QUICK]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("command")
    code = main([*POINT, "--out", str(folder / "run.nc"), "--plot", str(folder / "run.png")])
    return folder, code


def test_coexistence_prints_a_table_and_draws(run, capsys):
    folder, code = run
    assert code == 0
    assert (folder / "run.png").stat().st_size > 10_000
    assert main(["show", str(folder / "run.nc")]) == 0
    said = capsys.readouterr().out
    assert "mu2, equal weight" in said
    assert "both phases were sampled" in said
    assert workflows.load_result(folder / "run.nc").trusted == 1


def test_a_ladder_can_be_shown_and_drawn(run, capsys):
    folder, _ = run
    ladder = next((folder / "run.ladders").glob("pilot*.nc"))
    assert main(["show", str(ladder)]) == 0
    assert "replicas" in capsys.readouterr().out
    assert main(["plot", str(ladder), "--out", str(folder / "ladder.png")]) == 0
    assert main(["plot", str(folder / "run.nc"), "--out", str(folder / "again.pdf")]) == 0


def test_a_result_knows_its_study_and_not_its_parts(run):
    folder, _ = run
    result = workflows.load_result(folder / "run.nc")
    assert result.attrs["seed"] == 0 and result.attrs["format"] == "quenchphys result 1"
    settings = json.loads(result.attrs["settings"])
    assert settings["sweeps"] == 320 and settings["pilot_particles"] == 64
    parts = [qp.load(file).attrs for file in (folder / "run.ladders").glob("*.nc")]
    assert result.attrs["gradients"] == sum(part["gradients"] for part in parts)
    assert result.attrs["wall_time"] > sum(part["wall_time"] for part in parts)
    assert result.attrs["command"].startswith("quenchphys coexistence --bracket 2.2 2.5 --L 4 --quick")
    assert "study" not in result.attrs and "undefined" not in result.attrs


def test_table_and_figure_name_what_they_are_of(run, capsys):
    folder, _ = run
    main(["show", str(folder / "run.nc")])
    assert "coexistence of phi6, L = 4, lam = -1, eta = 0.2, seed 0, " in capsys.readouterr().out
    result = workflows.load_result(folder / "run.nc")
    drawing = draw(result, "two-column")
    words = [text.get_text() for text in drawing.findobj(Text)]
    assert any(r"$\phi^6$, $L = 4$, $\lambda = -1$" in word and r"$\mu^2$ = " in word for word in words)
    assert {"(a)", "(b)", "(c)", "phase cut"} <= set(words)
    assert drawing.get_size_inches()[0] == 7.0
    assert "not to be trusted" not in words
    card = result.quenchphys._repr_html_()
    assert "Coexistence of phi6, L = 4" in card and "mu2, equal weight" in card and "<polyline" in card
    assert result.quenchphys.report() in repr(result.quenchphys)
    doubted = draw(result.assign_attrs(trusted=0))
    assert "not to be trusted" in [text.get_text() for text in doubted.findobj(Text)]
    plt.close("all")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["coexistence", "--L", "4", "--bracket", "2.5", "2.2"], "reversed"),
        (["coexistence", "--L", "4", "--bracket", "2.2", "2.5", "--model", "phi5"], "no model 'phi5'"),
        (["coexistence", "--L", "4", "--bracket", "2.2", "2.5", "--out", "/nowhere/run.nc"], "does not exist"),
        (["coexistence", "--L", "4", "--bracket", "2.2", "2.5", "--plot", "run.bmp"], "ends in .png"),
        (["zbeta", "--L", "4"], "needs a value of mu2"),
        (["zbeta", "--L", "4", "--set", "mu2=2.3", "--beta", "1", "0", "5"], "two increasing numbers"),
        (["show", "nothing.nc"], "no file nothing.nc"),
        (["fss", "--sizes", "8", "--bracket", "2.2", "2.5"], "at least 3"),
        (["coexistence", "--L", "4", "--bracket", "2.2", "2.5", "--pilot-particles", "1"], "at least 2; 1 was given"),
        ([*POINT, "--particles", "64", "--pilot-particles", "64"], "give one of them, not both"),
    ],
)
def test_a_wrong_request_is_one_sentence(arguments, says, capsys):
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert says in said
    assert "Traceback" not in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "Which command?  There are calibrate, coexistence"),
        (["coexistnce"], "no command 'coexistnce'; did you mean coexistence?"),
        (["coexistence", "--brackets", "1", "2"], "no option --brackets; did you mean --bracket?"),
        (["coexistence", "--pilot_particles", "4"], "no option --pilot_particles; did you mean --pilot-particles?"),
        (["fss", "--size", "8", "12"], "no option --size; did you mean --sizes?"),
        (["show", "--zzz"], "no option --zzz (quenchphys show --help lists them)"),
        (["show"], "quenchphys show needs a file"),
        (["show", "a.nc", "b.nc"], "does not understand 'b.nc'"),
        (["quench", "--out", "run.nc", "--set", "mu2"], "--set takes a coupling as NAME=VALUE, such as lam=-1; 'mu2' was"),
        (["quench", "--out", "run.nc", "--set", "=3"], "--set takes a coupling as NAME=VALUE"),
        (["zbeta", "--L", "8.5"], "--L must be a whole number; '8.5' was given"),
        (["zbeta", "--softness", "hard"], "--softness must be a number; 'hard' was given"),
        (["coexistence", "--bracket", "2.2"], "--bracket needs 2 values"),
        (["fss", "--order", "third"], "--order must be one of first, second; 'third' was given"),
        (["zbeta", "--L", "4", "--set", "mu2=1", "--set", "mu2=2"], "--set mu2 was given 2 times"),
    ],
)
def test_a_typo_is_one_sentence_with_a_suggestion(arguments, says, capsys):
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert says in said
    assert len(said.strip().splitlines()) == 1


def test_the_help_and_the_version_do_without_jax():
    """In a process of its own, because here everything is imported: these take a second and a half of processor time."""
    check = (
        "import sys; from workflows.command_line import main\n"
        "for words in (['--help'], ['--version'], *([name, '--help'] for name in sys.argv[1:])):\n"
        "    try: main(words)\n"
        "    except SystemExit as stopped: assert stopped.code == 0\n"
        "slow = {'jax', 'numpy', 'scipy', 'xarray', 'matplotlib', 'quenchphys'} & set(sys.modules)\n"
        "assert not slow, slow"
    )
    names = [command.name for command in all_commands()]
    done = subprocess.run([sys.executable, "-c", check, *names], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"quenchphys {qp.__version__}" in done.stdout


def test_the_help_is_true_about_defaults():
    settings = inspect.signature(qp.quench).parameters
    assert (settings["particles"].default, settings["replicas"].default) == (
        defaults.QUENCH_PARTICLES,
        defaults.QUENCH_REPLICAS,
    )
    assert set(defaults.MODEL_NAMES) == set(lattices.models.MODELS)
    for name in defaults.TARGET_NAMES:
        assert callable(getattr(qp.targets, name))


def test_a_result_is_a_flat_table_for_other_programs(run, capsys):
    folder, _ = run
    file = folder / "run.nc"
    result = workflows.load_result(file)
    assert main(["show", str(file), "--csv"]) == 0
    table = pd.read_csv(io.StringIO(capsys.readouterr().out))
    point = table[table.quantity == "mu2"]
    assert point["value"].item() == pytest.approx(float(result.mu2)) and point["error"].item() > 0
    ordered = table[(table.quantity == "q") & (table.phase == "ordered")]
    assert ordered["value"].item() == pytest.approx(float(result.q.sel(phase="ordered")))
    curve = table[table.quantity == "p_q"].dropna(subset="q_axis")
    assert np.allclose(curve["value"], result.p_q) and np.allclose(curve["q_axis"], result.q_axis)
    assert len(table) < 2 * sum(variable.size for variable in result.values())
    assert main(["show", str(file), "--json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert read["quantities"]["mu2"]["value"] == float(result.mu2)
    assert read["quantities"]["q"]["dims"] == ["phase"] and read["axes"]["phase"] == ["disordered", "ordered"]
    assert read["attributes"]["trusted"] == 1 and read["attributes"]["request"]["workflow"] == "coexistence"


def test_ladders_and_walks_are_flat_tables_too(run):
    folder, _ = run
    ladder = qp.load(next((folder / "run.ladders").glob("pilot*.nc")))
    table = workflows.to_dataframe(ladder)
    volumes = table[table.quantity == "log_volume"]
    assert np.allclose(volumes["value"], ladder.levels["log_volume"].values.ravel(), equal_nan=True)
    assert list(volumes.columns[:3]) == ["quantity", "replica", "level"]
    walk = qp.load(next((folder / "run.ladders").glob("walk1_*.nc")))
    assert set(workflows.to_dataframe(walk).quantity) >= {"step_size", "weight_log"}
    with pytest.raises(TypeError, match="but list was given"):
        workflows.to_dataframe([])


def test_help_teaches(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    assert "quenchphys coexistence --L 16 --out run.nc" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "function", "passed"),
    [
        (POINT, "coexistence", {"sweeps": 320}),
        ([*POINT, "--sweeps", "640"], "coexistence", {"sweeps": 640}),
        (
            [*POINT, "--pilot-particles", "100", "--pilot-replicas", "2", "--groups", "9", "--chains", "3"],
            "coexistence",
            {"sweeps": 320, "pilot_particles": 100, "pilot_replicas": 2, "groups": 9, "chains": 3},
        ),
        ([*POINT, "--particles", "100"], "coexistence", {"sweeps": 320, "particles": 100}),
        (["zbeta", "--L", "4", "--set", "mu2=2.3", "--quick"], "partition_function", {"particles": 200, "replicas": 4}),
        (
            ["fss", "--sizes", "4", "6", "8", "--bracket", "2.2", "2.5", "--quick"],
            "finite_size_scaling",
            {"sweeps": 320},
        ),
        (
            ["fss", "--sizes", "4", "6", "8", "--bracket", "-1.35", "-1.2", "--model", "phi4", "--quick"],
            "finite_size_scaling",
            {"sweeps": 320},
        ),
    ],
)
def test_settings_reach_the_workflow_and_quick_does_what_its_help_promises(command, function, passed, monkeypatch):
    called = {}

    def workflow(*_, **named):
        called.update(named)
        raise ValueError("far enough")

    monkeypatch.setattr(workflows, function, workflow)
    assert main(command) == 2
    settings = {"pilot_particles", "pilot_replicas", "groups", "chains", "sweeps", "particles", "replicas"}
    assert {name: value for name, value in called.items() if name in settings} == passed


def test_an_old_option_is_explained_in_one_line(tmp_path, capsys):
    assert main([*POINT, "--particles", "1", "--out", str(tmp_path / "run.nc")]) == 2
    first, second = capsys.readouterr().err.strip().splitlines()
    assert "particles is now called pilot_particles (--pilot-particles on the command line)" in first
    assert "pilot_particles must be at least 2" in second


def test_every_workflow_has_a_table_a_figure_and_a_command():
    assert set(RESULTS) >= {"calibrate", "coexistence", "finite_size_scaling", "partition_function", "reproduce"}
    commands = {"calibrate", "coexistence", "fss", "plot", "pool", "quench", "report", "reproduce", "show", "zbeta"}
    assert {command.name for command in all_commands()} >= commands


def test_a_report_is_one_page_that_needs_nothing_else(run, capsys):
    folder, _ = run
    page = folder / "run.html"
    assert main(["report", str(folder / "run.nc"), "--out", str(page)]) == 0
    text = page.read_text()
    check_page(text)
    in_order = (
        "Can be trusted", "mu2, equal weight", "<svg", "crossings between the phases", "autocorrelation time", "Settings",
        "versions", "quenchphys coexistence --bracket",
    )  # fmt: skip
    places = [text.index(words) for words in in_order]
    assert places == sorted(places), "the verdict comes first"
    assert main(["report", str(folder / "run.nc"), "--out", str(page)]) == 2
    assert "exists already" in capsys.readouterr().err
    check_in_browser(page)


def test_ctrl_c_leaves_what_was_computed(tmp_path, ctrl_c):
    """In a process of its own: interrupted in a study that is much too long, it ends soon, and says how to go on."""
    out = tmp_path / "run.nc"
    command = [sys.executable, "-m", "quenchphys", *POINT, "--sweeps", "1000000", "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        while not list((tmp_path / "run.ladders").glob("*.checkpoint/*")):
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        _, rest = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in rest
    assert "Run the same command again to continue" in rest
    assert not out.exists()
    assert list((tmp_path / "run.ladders").glob("pilot_*"))
    assert time.monotonic() - begun < 300


def test_ctrl_c_inside_a_destructor_is_not_lost(monkeypatch, capsys):
    """Python drops an exception there; the command must stop all the same."""

    class Fleeting:
        def __del__(self):
            raise KeyboardInterrupt

    def study(**_):
        Fleeting()
        time.sleep(5)
        raise AssertionError("the command went on")

    monkeypatch.setattr(workflows, "coexistence", study)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a worker of the tests may ignore it
    try:
        assert main(POINT) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err.strip() == "Interrupted."
