"""Sizes as tasks of a cluster: the bits of a single machine, also where a worker is killed on the way."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest
from distributed import Client, LocalCluster

import workflows
from tests.support.mean_field_model import one_site
from workflows.cluster import connect, run_all

SIZES, BRACKET = [4, 8, 16], (-0.6, 0.4)
SETTINGS = {"particles": 32, "replicas": 2, "lam": 0.25, "eta": 0.0, "progress": False}


@pytest.fixture(scope="module")
def client():
    """Two workers with one thread each, in processes of their own."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def killed_once(marker):
    """The family of one-site models; the first worker that builds L = 8 is killed a moment later, while it samples."""

    def one_site_again(L, mu2, lam=-1.0, eta=0.5):
        from distributed import get_worker

        try:
            get_worker()
        except ValueError:
            return one_site(L, mu2, lam, eta)
        if L == 8 and not marker.exists():
            marker.write_text(str(os.getpid()))
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return one_site(L, mu2, lam, eta)

    one_site_again.__name__ = "one_site"
    return one_site_again


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_same_bits_although_a_worker_is_killed(client, tmp_path):
    alone = workflows.finite_size_scaling(SIZES, BRACKET, model=one_site, **SETTINGS)
    before = set(client.run(os.getpid).values())
    marker = tmp_path / "killed"
    model = killed_once(marker)
    spread = workflows.finite_size_scaling(SIZES, BRACKET, model=model, client=client, out=tmp_path / "fss.nc", **SETTINGS)
    assert int(marker.read_text()) in before
    assert int(marker.read_text()) not in set(client.run(os.getpid).values())
    for name in alone.data_vars:
        assert np.array_equal(alone[name].values, spread[name].values, equal_nan=True), name
    assert sorted(path.name for path in (tmp_path / "fss.ladders").glob("L*")) == ["L16_-0.1.nc", "L4_-0.1.nc", "L8_-0.1.nc"]


def test_errors_of_a_task_arrive_as_they_are(client):
    def wrong(number):
        raise ValueError(f"{number} is wrong.")

    with pytest.raises(ValueError, match="7 is wrong"):
        run_all(client, wrong, [(7,)])
    assert run_all(client, divmod, [(7, 2), (9, 4)]) == [(3, 1), (2, 1)]
    assert run_all(None, divmod, [(7, 2)]) == [(3, 1)]


def test_an_address_that_nobody_answers_at_is_one_sentence():
    assert connect(None) is None
    with pytest.raises(ValueError, match="No scheduler of dask answers at 'nonsense'"):
        connect("nonsense")
