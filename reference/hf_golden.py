"""Golden numbers for the model: logits, loss, gradients and 20 steps of Adam of BART and mBART as Hugging Face computes them.

  pip install torch transformers safetensors
  python3 reference/hf_golden.py crates/polystep-learn/tests/golden

Writes bart.safetensors (post-norm, ReLU) and mbart.safetensors (pre-norm, GELU): d 64, 4 heads, 2+2 layers, FFN 64, 64 tokens,
24 positions; and, without gradients, mbart-1-3.safetensors: one layer in the encoder, three in the decoder. Weights are not stored: element i of tensor `name` is ((splitmix64(crc32(name)·2^32 + i) >> 40) / 2^24 − 1/2)·0.4,
plus 1 for the scale of a norm; the test computes the same. The batch is ragged; here it is padded and masked, there packed.
"""
import sys, zlib, numpy as np, torch, transformers
from safetensors.torch import save_file

SOURCES = [[4, 17, 30, 9, 22, 2], [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 2], [63, 2]]
TARGETS = [[7, 8, 9, 2], [20, 21, 22, 23, 24, 25, 2], [40, 41, 42, 43, 2]]  # labels, </s> included


def fill(name, shape):
    i = np.arange(np.prod(shape), dtype=np.uint64)
    with np.errstate(over="ignore"):
        z = np.uint64(zlib.crc32(name.encode())) * np.uint64(1 << 32) + i + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    w = ((z >> np.uint64(40)).astype(np.float64) / 2**24 - 0.5) * 0.4
    if "norm" in name and name.endswith(".weight"):
        w += 1.0
    return torch.tensor(w.astype(np.float32).reshape(shape))


def padded(rows, pad):
    n = max(map(len, rows))
    return torch.tensor([r + [pad] * (n - len(r)) for r in rows])


def model(kind, layers):
    pre = kind == "mbart"
    names = dict(bart=("BartConfig", "BartForConditionalGeneration"), mbart=("MBartConfig", "MBartForConditionalGeneration"))[kind]
    config = getattr(transformers, names[0])(
        vocab_size=64, d_model=64, encoder_layers=layers[0], decoder_layers=layers[1], encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=24, activation_function="gelu" if pre else "relu",
        scale_embedding=False, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1, forced_eos_token_id=None)
    m = getattr(transformers, names[1])(config).train()
    with torch.no_grad():
        for name, p in m.named_parameters():
            p.copy_(fill(name, tuple(p.shape)))
    return m


def main(folder):
    src, labels = padded(SOURCES, 0), padded(TARGETS, -100)
    mask = padded([[1] * len(r) for r in SOURCES], 0)
    inputs = padded([[1] + r[:-1] for r in TARGETS], 0)
    for file, kind, layers in (("bart", "bart", (2, 2)), ("mbart", "mbart", (2, 2)), ("mbart-1-3", "mbart", (1, 3))):
        m = model(kind, layers)
        run = lambda: m(input_ids=src, attention_mask=mask, decoder_input_ids=inputs, labels=labels)
        out = run(); out.loss.backward()
        logits = torch.cat([out.logits[i, : len(t)] for i, t in enumerate(TARGETS)])
        golden = {"logits": logits.detach().contiguous(), "loss": out.loss.detach().reshape(1)}
        for name, p in m.named_parameters() if layers == (2, 2) else ():
            golden["grad." + name] = p.grad.detach().clone().contiguous()
        adam, losses = torch.optim.Adam(m.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-8), []
        for _ in range(20):
            adam.zero_grad(); loss = run().loss; loss.backward()
            torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0); adam.step(); losses.append(loss.item())
        golden["losses"] = torch.tensor(losses)
        save_file(golden, f"{folder}/{file}.safetensors")
        print(file, "loss", out.loss.item(), "after 20 steps", losses[-1], "| torch", torch.__version__, "transformers", transformers.__version__)


main(sys.argv[1])
