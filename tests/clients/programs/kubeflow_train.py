"""The unmodified Kubeflow SDK trains a function on two nodes of the laptop's plane."""

from __future__ import annotations

from kubeflow.trainer import CustomTrainer, TrainerClient


def train(word: str) -> None:
    import os

    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    total = torch.ones(1)
    dist.all_reduce(total)
    print(f"{word}: rank {os.environ['RANK']} sees {int(total.item())} ranks")
    dist.destroy_process_group()


def main() -> None:
    client = TrainerClient()
    runtime = client.get_runtime("torch-distributed")
    name = client.train(
        runtime=runtime,
        trainer=CustomTrainer(func=train, func_args={"word": "hello"}, num_nodes=2),
    )
    seen = [client.get_job(name).status]

    def note(job: object) -> None:
        if job.status != seen[-1]:
            seen.append(job.status)

    job = client.wait_for_job_status(name, timeout=200, polling_interval=1, callbacks=[note])
    note(job)
    assert job.status == "Complete", job
    # A quick job may be Running at the first look already; no other word may ever be seen.
    assert seen in (["Created", "Running", "Complete"], ["Running", "Complete"]), seen
    assert job.num_nodes == 2, job
    assert [step.name for step in job.steps] == ["node-0", "node-1"], job.steps
    assert {step.status for step in job.steps} == {"Succeeded"}, job.steps
    lines = [line for node in (0, 1) for line in client.get_job_logs(name, step=f"node-{node}")]
    text = "\n".join(lines)
    for rank in range(2):
        assert f"hello: rank {rank} sees 2 ranks" in text, text
    followed = "\n".join(client.get_job_logs(name, step="node-0", follow=True))
    assert "sees 2 ranks" in followed, followed
    assert name in [found.name for found in client.list_jobs(runtime=runtime)]
    assert all(event.reason for event in client.get_job_events(name))
    client.delete_job(name)
    assert name not in [found.name for found in client.list_jobs()]


if __name__ == "__main__":
    main()
