"""The final examination of several tasks keeps less, and says the same."""

import numpy as np
import torch

from bayspike.continual.tasks import Task
from bayspike.data.base import StaticSamples
from bayspike.predict.predictors import Committee, predict_samples
from bayspike.runs.outcome.examination import examine
from bayspike.seeds import generator_for
from bayspike.spiking.network import NetworkConfig, build


def test_what_is_kept_is_part_of_the_whole() -> None:
    generator = torch.Generator().manual_seed(0)
    network = build(NetworkConfig(inputs=12, hidden=(10,), classes=3))
    committee = Committee(network, [0.5 * torch.randn(4, 10, 12, generator=generator)])

    def samples(count: int) -> StaticSamples:
        values = torch.randint(0, 256, (count, 12), dtype=torch.uint8, generator=generator)
        return StaticSamples(values, torch.randint(3, (count,), generator=generator), 8)

    tasks = [Task(str(k), part := samples(count), part) for k, count in enumerate((7, 5, 9))]
    kept = torch.tensor([20, 3, 8, 0, 11, 7])
    part, whole = examine(committee, tasks, 5, kept), examine(committee, tasks, 5)
    spikes = generator_for(5, "final")
    done = [predict_samples(committee, task.test, spikes) for task in tasks]
    everything = torch.cat([each.probabilities for each in done], dim=1)
    assert torch.equal(whole.probabilities, everything)
    assert torch.equal(part.probabilities, everything[:, kept])
    assert torch.equal(part.final, everything[-1])
    assert part.members is not None
    members = torch.cat([each.members for each in done if each.members is not None], dim=1)
    assert torch.equal(part.members, members[:, kept])
    m = members.double().numpy()
    information = (m * np.log(m)).sum(-1).mean(0) - (m.mean(0) * np.log(m.mean(0))).sum(-1)
    assert part.mutual_information is not None
    np.testing.assert_allclose(part.mutual_information, information, atol=1e-7)
    right = (everything[-1].argmax(-1) == torch.cat([task.test.labels for task in tasks])).double()
    assert [scores.accuracy for scores in part.tasks] == [float(each.mean()) for each in right.split([7, 5, 9])]
    np.testing.assert_allclose(part.rates, whole.rates)
