"""Does a folder written by `polystep export` say in Hugging Face `transformers` what our decoder says?

  pip install torch transformers
  polystep eval RUN && polystep export RUN --out FOLDER
  python3 reference/hf_export_check.py FOLDER RUN/predictions/CONFIG-VARS/greedy.jsonl [--inputs 1000]

Generates greedily for the first inputs of our own greedy predictions and compares the texts. Where they differ, the margin between
the two tokens at the first difference is printed from Hugging Face's logits: a near-tie (below 0.05) is rounding, anything else a bug.
Exits 1 if fewer than 99.9 % are identical or if a difference is no near-tie.
"""
import argparse, json, sys, torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, __version__

p = argparse.ArgumentParser(); p.add_argument("folder"); p.add_argument("predictions"); p.add_argument("--inputs", type=int, default=1000)
p.add_argument("--batch", type=int, default=64); args = p.parse_args()
tokenizer, model = AutoTokenizer.from_pretrained(args.folder), AutoModelForSeq2SeqLM.from_pretrained(args.folder).eval()
records = [json.loads(line) for line in open(args.predictions)][: args.inputs]
records = [r for r in records if len(r["beams"]) > 0]
plain = lambda text: text.replace(" ", "")
same, wrong = 0, []
with torch.no_grad():
    for start in range(0, len(records), args.batch):
        part = records[start : start + args.batch]
        batch = tokenizer([r["input"] for r in part], return_tensors="pt", padding=True)
        out = model.generate(**batch)
        for r, ids in zip(part, out):
            theirs, ours = tokenizer.decode(ids, skip_special_tokens=True), r["beams"][0]["output"]
            if plain(theirs) == plain(ours):
                same += 1
                continue
            a, b = tokenizer(theirs)["input_ids"], tokenizer(ours)["input_ids"]
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)) - 1)
            source = tokenizer(r["input"], return_tensors="pt")
            logits = model(**source, decoder_input_ids=torch.tensor([[1] + a[:at]])).logits[0, -1]
            wrong.append((float(logits[a[at]] - logits[b[at]]), r["input"], theirs, ours))
print(f"transformers {__version__}, {type(model).__name__}: {same} of {len(records)} identical")
for margin, source, theirs, ours in wrong:
    print(f"  margin {margin:.4f}\n    input  {source}\n    theirs {theirs}\n    ours   {ours}")
ok = same >= 0.999 * len(records) and all(abs(m) < 0.05 for m, *_ in wrong)
sys.exit(0 if ok and records else 1)
