"""Fine-tuned in Hugging Face `transformers`, saved, and read back by polystep: are the greedy outputs the same?

  pip install torch transformers
  polystep export RUN --out FOLDER
  python3 reference/finetune_roundtrip.py FOLDER TUNED [--steps 30] [--inputs 1000] [--polystep target/release/polystep]

Fine-tunes the exported model on step examples of its own task (polystep generate, seed 7), writes it to TUNED with
`save_pretrained`, and generates greedily for the first steps of the test set in transformers. `polystep answer TUNED` decodes the same
inputs. Where the texts differ, the margin between the two tokens at the first difference is printed from the logits of transformers.
Exits 1 unless all outputs are identical, or if fine-tuning has changed nothing.
"""
import argparse, json, subprocess, sys, torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, __version__

p = argparse.ArgumentParser(); p.add_argument("folder"); p.add_argument("tuned")
p.add_argument("--steps", type=int, default=30); p.add_argument("--inputs", type=int, default=1000)
p.add_argument("--batch", type=int, default=32); p.add_argument("--polystep", default="polystep"); args = p.parse_args()
torch.manual_seed(7)
tokenizer, model = AutoTokenizer.from_pretrained(args.folder), AutoModelForSeq2SeqLM.from_pretrained(args.folder)
task = json.load(open(f"{args.folder}/config.json"))["polystep"]["data"]
flags = [f"--{key}={task[key]}" for key in ("config", "vars", "setting", "granularity", "notation")]

def steps(split, count, *more):
    command = [args.polystep, "generate", *flags, "--split", split, "--steps", str(count), *more]
    return [json.loads(line) for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()]

# The decoder starts from <s> (1), which mBART's own shift of labels does not do: so decoder_input_ids are given.
train = steps("train", args.steps * args.batch, "--seed", "7")
optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)
before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
model.train()
for at in range(0, len(train), args.batch):
    part = train[at : at + args.batch]
    source = tokenizer([r["input"] for r in part], return_tensors="pt", padding=True)
    labels = tokenizer([r["target"] for r in part], return_tensors="pt", padding=True).input_ids
    start = torch.full_like(labels[:, :1], model.config.decoder_start_token_id)
    decoder = torch.cat([start, labels[:, :-1]], dim=1)
    loss = model(**source, decoder_input_ids=decoder, labels=labels.masked_fill(labels == 0, -100)).loss
    loss.backward(); optimiser.step(); optimiser.zero_grad()
    if at // args.batch % 10 == 0:
        print(f"step {at // args.batch}: loss {loss.item():.4f}", flush=True)
moved = max(float((tensor - before[name]).abs().max()) for name, tensor in model.state_dict().items())
model.eval(); model.save_pretrained(args.tuned); tokenizer.save_pretrained(args.tuned)

# Read back from the disk, as anyone else would.
model = AutoModelForSeq2SeqLM.from_pretrained(args.tuned).eval()
test = steps("test", args.inputs)
theirs = []
with torch.no_grad():
    for at in range(0, len(test), args.batch):
        source = tokenizer([r["input"] for r in test[at : at + args.batch]], return_tensors="pt", padding=True)
        theirs += tokenizer.batch_decode(model.generate(**source), skip_special_tokens=True)
lines = "".join(json.dumps({"input": r["input"]}) + "\n" for r in test)
answer = subprocess.run([args.polystep, "answer", args.tuned, "--device", "cpu"], input=lines, check=True, capture_output=True, text=True)
ours = [json.loads(line)["beams"][0]["output"] for line in answer.stdout.splitlines()]
plain = lambda text: text.replace(" ", "")
wrong = [(r["input"], a, b) for r, a, b in zip(test, theirs, ours, strict=True) if plain(a) != plain(b)]
right = sum(plain(a) == plain(r["target"]) for r, a in zip(test, theirs))
print(f"transformers {__version__}, torch {torch.__version__}, {type(model).__name__}, {task['config']}:{task['vars']}")
print(f"largest change of a weight: {moved:.6f}; {right} of {len(test)} outputs are right")
print(f"{len(test) - len(wrong)} of {len(test)} greedy outputs identical")
for source, a, b in wrong:
    x, y = tokenizer(a)["input_ids"], tokenizer(b)["input_ids"]
    at = next((i for i, (s, t) in enumerate(zip(x, y)) if s != t), min(len(x), len(y)) - 1)
    logits = model(**tokenizer(source, return_tensors="pt"), decoder_input_ids=torch.tensor([[1] + x[:at]])).logits[0, -1]
    print(f"  margin {float(logits[x[at]] - logits[y[at]]):.5f}\n    input  {source}\n    theirs {a}\n    ours   {b}")
sys.exit(0 if not wrong and moved > 0 and len(test) == args.inputs else 1)
