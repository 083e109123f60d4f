"""Z(beta) from one ladder, over temperatures below and above the one the model is made for."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import workflows
from tests.observables.estimation.test_errors import LUCKY, rare_phase
from tests.support.mean_field_model import averages, one_site
from workflows.budget import LadderSettings
from workflows.thermal import refined

SMALL = {"particles": 64, "replicas": 4, "progress": False}


def test_every_temperature_is_that_of_quadrature(tmp_path):
    problem = one_site(4, 1.0)
    betas = np.linspace(0.0, 1.6, 9)
    found = workflows.partition_function(problem, betas, out=tmp_path / "z.nc", **SMALL)
    exact = np.array([averages(problem, lambda x: x, beta)[1] for beta in betas])
    assert (np.abs(found.log_z.values - exact) < 6 * found.log_z_err.values + 1e-9).all()
    assert found.log_z_err.values.max() < 0.3
    assert found.trusted == 1
    assert float(found.heat_capacity[0]) == 0.0
    assert float(found.free_energy[0]) == float(found.energy[0])
    kept = workflows.load_result(tmp_path / "z.nc")
    assert (kept.log_z.values == found.log_z.values).all()


def test_a_single_ladder_in_which_one_particle_decides_is_not_trusted(monkeypatch):
    for replicas, trusted in ((1, 0), (2, 1)):
        made = rare_phase(LUCKY, replicas=replicas)
        monkeypatch.setattr(LadderSettings, "quench", lambda *_, made=made: made)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = workflows.partition_function(one_site(4, 1.0), 1.0, progress=False)
        assert found.trusted == trusted
        assert ("descends from one particle" in found.why) is (trusted == 0)
        assert any("Z(beta) is not to be trusted" in str(one.message) for one in said) is (trusted == 0)


@pytest.mark.parametrize("beta", [[-0.1, 1.0], [np.nan], [], "hot"])
def test_wrong_temperatures_are_refused(beta):
    with pytest.raises(ValueError):
        workflows.partition_function(one_site(4, 1.0), beta, **SMALL)


def test_a_narrow_peak_is_resolved():
    """A grid with one point in the peak gets points on its sides; a straight line gets none."""

    def peak(x):
        return 1 / (1 + ((x - 0.503) / 0.004) ** 2)

    coarse = np.linspace(0, 1, 41)
    fine = refined(coarse, peak(coarse), peak)
    near = fine[np.abs(fine - 0.503) < 0.012]
    assert len(near) > 10 and len(fine) < 200
    across = np.linspace(0.48, 0.53, 500)
    assert np.abs(np.interp(across, fine, peak(fine)) - peak(across)).max() < 0.06
    assert len(refined(coarse, 2 * coarse, lambda x: 2 * x)) == 41
