"""One ladder on 1, 2 and 8 devices and in 1, 2 and 4 processes: the same numbers, wall time, bytes sent at a level.

    python -m benchmarks.speed.devices
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Sequence
from math import prod
from typing import Any

from benchmarks import harness

RUN = """
import json, sys, time
import jax
port, processes, process, devices, L = map(int, sys.argv[1:])
jax.config.update("jax_num_cpu_devices", devices)
import lattices, quenchphys as qp, observables
if processes > 1:
    qp.join(f"localhost:{port}", processes, process)
from benchmarks.speed.devices import traffic
model = lattices.phi6(L=L, mu2=2.2866)
settings = dict(particles=512, replicas=2, seed=1)
begin = time.time()
ladder = qp.quench(model, **settings, stop=qp.LevelLimit(16))
compiled = time.time() - begin
begin = time.time()
ladder = qp.quench(model, **settings)
wall = time.time() - begin
log_z = float(observables.partition_function(ladder).log_z.squeeze())
if process == 0:
    result = {"devices": ladder.attrs["devices"], "levels": int(ladder.levels.level_count.max()), "log_z": log_z.hex(),
              "wall": wall, "first": compiled, **traffic(model, **settings)}
    print("RESULT" + json.dumps(result), flush=True)
"""


def traffic(model: Any, **settings: Any) -> dict[str, int]:
    """Collectives and bytes each device receives at one level, read from the compiled program."""
    import jax
    import numpy as np

    from quenchphys.problem import view
    from quenchphys.settings import Settings, default_kernel
    from quenchphys.smc.levels import SoftLevels
    from quenchphys.smc.loop import contained, orders, plan_for
    from quenchphys.smc.programs import programs_for
    from quenchphys.smc.step import Thresholds

    plan, mesh = plan_for(Settings(**settings, kernel=default_kernel(model.softness)), int(np.prod(view(model).shape)))
    with contained(mesh):
        program, argument = programs_for(plan, mesh), view(model).as_argument()
        family = SoftLevels(np.float32(model.softness))
        key = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), settings["replicas"]))
        common = jax.eval_shape(lambda: jax.random.key(0))
        _, draws, seen = jax.eval_shape(program.draw_prior, argument, key)
        begin = (argument, family, key, common, draws, seen, np.float32(np.nan))
        state, _, _ = jax.eval_shape(program.start, *begin)
        rates = Thresholds(np.float32(0.95), np.float32(0.5))
        text = program.descend.lower(argument, family, rates, state, orders(None, 0, 6)).compile().as_text()
    width = {"f32": 4, "s32": 4, "u32": 4, "pred": 1, "s64": 8}
    found = re.findall(r"= (.*?) (?:all-gather|all-reduce|reduce-scatter|all-to-all)(?:-start)?\(", text)
    shapes = [re.findall(r"(f32|s32|u32|pred|s64)\[([\d,]*)\]", one) for one in found]
    sizes = [sum(width[kind] * prod(map(int, dims.split(","))) for kind, dims in one if dims) for one in shapes]
    return {"collectives": len(sizes), "bytes": sum(sizes)}


def measure(processes: int, devices: int, L: int) -> dict[str, Any]:
    """One ladder in so many processes with so many devices each, as process 0 reports it."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    run = [
        subprocess.Popen(
            [sys.executable, "-c", RUN, *map(str, (port, processes, number, devices, L))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=harness.environment(),
        )
        for number in range(processes)
    ]
    (output, errors), *_ = [process.communicate() for process in run]  # all must end; the first one reports
    lines = [line for line in output.splitlines() if line.startswith("RESULT")]
    if not lines:
        raise RuntimeError(errors[-2000:])
    return json.loads(lines[0].removeprefix("RESULT"))


def main(arguments: Sequence[str] | None = None) -> None:
    harness.parser(__doc__).parse_args(arguments)
    columns = {"processes": "d", "devices each": "d", "spread": "6s", "levels": "d", "log Z": "23s", "wall s": ".1f"}
    table = harness.Table(columns | {"first s": ".1f", "collectives": "d", "bytes at a level": "d"})
    for processes, devices in [(1, 1), (1, 2), (1, 8), (2, 1), (4, 1)]:
        found = measure(processes, devices, 8)
        names = ("devices", "levels", "log_z", "wall", "first", "collectives", "bytes")
        table.add(processes, devices, *(found[name] for name in names))
    harness.save("devices", table.rows)
    if len({row["log Z"] for row in table.rows}) > 1:
        raise SystemExit("log Z differs")
    print("log Z is the same to the last bit")


if __name__ == "__main__":
    main()
