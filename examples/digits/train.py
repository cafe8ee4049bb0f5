"""Recognise handwritten digits with PyTorch DistributedDataParallel, on CPUs.

Data: the digits that scikit-learn ships, 1,797 images of 8 x 8 pixels in 10 classes.
torchrun's environment (rank, world size, rendezvous) is all that the script needs.
"""

from __future__ import annotations

import os

import numpy as np
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.parallel import DistributedDataParallel

EPOCHS = int(os.environ.get("EPOCHS", "30"))
BATCH = 64


def load_data() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Training and test images (rows, 64) float32 in 0..1, and their classes (rows,) int64."""
    digits = load_digits()
    images = (digits.data / 16.0).astype(np.float32)
    split = train_test_split(
        images, digits.target, test_size=0.2, random_state=0, stratify=digits.target
    )
    train_x, test_x, train_y, test_y = (torch.from_numpy(np.asarray(part)) for part in split)
    return train_x, train_y.long(), test_x, test_y.long()


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    print(f"rank {rank} of {world} is here", flush=True)
    train_x, train_y, test_x, test_y = load_data()

    torch.manual_seed(0)
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loss_of = nn.CrossEntropyLoss()
    for epoch in range(1, EPOCHS + 1):
        order = torch.randperm(len(train_x), generator=torch.Generator().manual_seed(epoch))
        # Every rank takes the same number of rows, so that all make equally many steps.
        mine = order[rank : len(order) - len(order) % world : world]
        loss = torch.zeros(())
        for rows in mine.split(BATCH):
            optimizer.zero_grad()
            loss = loss_of(model(train_x[rows]), train_y[rows])
            loss.backward()
            optimizer.step()
        if rank == 0 and (epoch % 5 == 0 or epoch == EPOCHS):
            print(
                f"epoch {epoch}/{EPOCHS} ({100 * epoch // EPOCHS}%) loss {loss.item():.4f}",
                flush=True,
            )

    if rank == 0:
        with torch.no_grad():
            accuracy = (model.module(test_x).argmax(1) == test_y).float().mean().item()
        print(f"test accuracy {accuracy:.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
