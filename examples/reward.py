"""A reward from the checker, for a model that learns from its own samples.

    python examples/reward.py --rounds 5

The model of train_transformer.py learns a little from data. Then it goes on from its own samples: it writes several answers to each
input, the checker judges them, and the model learns from those that are right. It never sees a target again.
"""

import argparse

import polystep
import torch
from torch import nn
from train_transformer import BOS, EOS, LONGEST, PAD, SPACE, Examples, Simplifier, learn

REWARDS = {"exact": 1.0, "same value": 0.1, "wrong value": 0.0, "malformed": -0.1}


@torch.no_grad()
def sampled(model, src):
    """One answer to each input, drawn from the model's own probabilities."""
    tgt = torch.full((len(src), 1), BOS)
    ended = torch.zeros(len(src), dtype=torch.bool)
    while tgt.shape[1] < LONGEST and not ended.all():
        drawn = torch.distributions.Categorical(logits=model(src, tgt)[:, -1]).sample().masked_fill(ended, PAD)
        tgt = torch.cat([tgt, drawn[:, None]], 1)
        ended |= drawn == EOS
    return tgt


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--warm-up", type=int, default=600, help="steps of learning from data")
    arguments.add_argument("--rounds", type=int, default=10)
    arguments.add_argument("--samples", type=int, default=4, help="answers to each input")
    args = arguments.parse_args()

    torch.manual_seed(1)
    model = Simplifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _, (src, tgt) in zip(range(args.warm_up), Examples(128)):
        learn(model, optimizer, src, tgt)

    questions = polystep.examples(SPACE, batch_size=32, padded=True, special_tokens=True, longest=LONGEST, seed=2, threads=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for round, batch in zip(range(1, args.rounds + 1), questions):
        src = torch.from_numpy(batch.src).long().repeat_interleave(args.samples, 0)
        inputs = [text for text in batch.inputs for _ in range(args.samples)]
        answers = sampled(model, src)
        found = polystep.check(inputs, [polystep.decode(row.tolist()) for row in answers])
        reward = torch.tensor([REWARDS[check.verdict] for check in found])

        # REINFORCE with the mean of an input's answers as the baseline: learn what was better than usual.
        better = (reward.view(-1, args.samples) - reward.view(-1, args.samples).mean(1, keepdim=True)).flatten()
        logits = model(src, answers[:, :-1])
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), answers[:, 1:], ignore_index=PAD, reduction="none")
        optimizer.zero_grad()
        (loss.sum(1) * better).mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        wrong = next((check.reason for check in found if not check), "nothing is wrong")
        print(f"round {round}: reward {reward.mean():.3f}, exact {sum(map(bool, found)) / len(found):.3f}; e.g. {wrong}", flush=True)


if __name__ == "__main__":
    main()
