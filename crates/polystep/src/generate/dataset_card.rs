//! The dataset card, a README.md. Its YAML front matter tells Hugging Face `datasets` where the shards are and what a row holds.
//! Its text says how to make the same data again.

use arrow_schema::{DataType, FieldRef, Fields};
use polystep_core::arithmetic::{self, Drill};
use polystep_core::space::{Count, KEYS, Retry, Variables};
use polystep_core::{Setting, Space, StepKind, Task, TermOrder, Writing};

use crate::generate::parquet::Written;

/// What one row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// A whole proof.
    Proofs,
    /// One step.
    Steps,
}

/// A split of the dataset.
pub struct Split {
    /// Its name.
    pub name: &'static str,
    /// Its seed.
    pub seed: u64,
    /// Whether training avoids what it holds.
    pub guarded: bool,
    /// What its shards hold.
    pub written: Written,
}

/// What the card describes.
pub struct Card<'a> {
    /// The task that was generated.
    pub task: &'a Task,
    /// Its splits.
    pub splits: Vec<Split>,
    /// What one row is.
    pub contents: Contents,
    /// Its columns.
    pub columns: Fields,
}

/// The parts of a card that depend on the kind of data.
struct Story {
    name: String,
    tags: &'static str,
    text: String,
}

impl Card<'_> {
    /// The whole card.
    pub fn markdown(&self) -> String {
        let Task { vars, writing: Writing { setting, granularity, notation, .. }, .. } = self.task;
        let total = |part: fn(&Written) -> u64| self.splits.iter().map(|split| part(&split.written)).sum::<u64>();
        let (rows, bytes, memory) = (total(|w| w.rows), total(|w| w.bytes), total(|w| w.memory));
        let size = size_category(rows);
        let features = features(&self.columns, "  ");
        let (unit, flag, columns) = match self.contents {
            Contents::Proofs => {
                ("proofs", "--proofs", PROOF_COLUMNS.replace("KINDS", &StepKind::ALL.map(StepKind::name).join(", ")))
            }
            Contents::Steps => ("step examples", "--steps", STEP_COLUMNS.replace("KINDS", &StepKind::listed())),
        };
        let list = |line: &dyn Fn(&Split) -> String| self.splits.iter().map(line).collect::<String>();
        let files = list(&|Split { name, .. }| format!("  - split: {name}\n    path: data/{name}-*.parquet\n"));
        let sizes = list(&|Split { name, written: Written { rows, memory, .. }, .. }| {
            format!("  - name: {name}\n    num_bytes: {memory}\n    num_examples: {rows}\n")
        });
        let table = list(&|Split { name, seed, written, guarded }| {
            let note = match (*name, guarded) {
                ("train", _) => "no endpoint of the fixed sets",
                (_, true) => "fixed; training avoids its endpoints",
                (_, false) => "**beyond the fixed set: training is not guarded against it**",
            };
            format!("| `{name}` | {} | {seed} | {note} |\n", written.rows)
        });
        // One command makes all splits. The size is that of train, or of the only split.
        let first = self.splits.iter().find(|split| split.name == "train").or(self.splits.first());
        let (amount, seed) = first.map_or((0, 0), |split| (split.written.rows, split.seed));
        let names = self.splits.iter().map(|split| split.name).collect::<Vec<_>>().join(",");
        let Story { name, tags, text } = self.story(rows, unit);
        format!(
            "---
pretty_name: \"polystep {name}\"
license:
- mit
- apache-2.0
task_categories:
- text-generation
tags:
- mathematics
{tags}- synthetic
size_categories:
- {size}
configs:
- config_name: default
  data_files:
{files}dataset_info:
  features:
{features}  splits:
{sizes}  download_size: {bytes}
  dataset_size: {memory}
---

{text}
| split | {unit} | seed | |
|---|---:|---:|---|
{table}
The task is that of \"Analyzing the Nuances of Transformers' Polynomial Simplification Abilities\" (Agarwal, Aditya, Goyal).

    from datasets import load_dataset
    data = load_dataset(\"path/to/this/folder\")

{columns}
Made by polystep {version}; the same command makes the same data on any machine:

    polystep generate --config {config} --vars {vars} --setting {setting} --granularity {granularity} \\
        --notation {notation}{choices} --split {names} --seed {seed} {flag} {amount} --format parquet --out PATH

You may use the data under the MIT or the Apache-2.0 licence, as polystep itself.
",
            config = self.config(),
            choices = self.choices(),
            version = env!("CARGO_PKG_VERSION"),
        )
    }

    /// What the rows are about: polynomials of a space, or arithmetic exercises, which have no polynomial.
    fn story(&self, rows: u64, unit: &str) -> Story {
        let Task { space, vars, writing: Writing { setting, granularity, notation, .. } } = self.task;
        let variables = crate::table::counted(*vars, "variable");
        if *setting == Setting::Arithmetic {
            let drill: Option<Drill> = space.key.parse().ok();
            let which = match drill {
                Some(drill) => format!("of the kind `{}`", drill.name()),
                None => format!("of the kinds {} in turn", Drill::ALL.map(|d| format!("`{}`", d.name())).join(", ")),
            };
            return Story {
                name: format!("{}, {notation}", drill.map_or(arithmetic::MIXTURE, Drill::name)),
                tags: "- arithmetic\n",
                text: format!(
                    "# Sums and products of two numbers

{rows} exercises {which}, notation {notation}: `add4` is a sum of two 4-digit numbers, `mul9` a product of two 9-digit
numbers, without a leading 0. There is no polynomial in them: the columns for it hold what the command says, and mean nothing.
"
                ),
            };
        }
        let signs = match space.signed {
            true => {
                "Every sampled term is negative with probability ½; the caps hold for the polynomial without its signs.\n"
            }
            false => "",
        };
        Story {
            name: format!("{}, {variables}, {setting}, {granularity}, {notation}", space.key),
            tags: "- polynomials\n- step-by-step\n",
            text: format!(
                "# Polynomial simplification, step by step

{rows} {unit} of the space `{}` with {variables}: setting {setting}, granularity {granularity}, notation {notation}.
Every state of a proof has the same value; the last one is the polynomial in normal form.

{}
{signs}",
                space.key,
                caps(space)
            ),
        }
    }

    /// The value of `--config`: a name that this program knows, or a file.
    fn config(&self) -> &str {
        let key = self.task.space.key.as_str();
        let space = |k: &&str| key.strip_prefix(*k).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let known = KEYS.iter().any(space) || arithmetic::KEYS.contains(&key);
        if known { key } else { "FILE.toml" }
    }

    /// The flags that are not at their defaults.
    fn choices(&self) -> String {
        let Task { space, writing: Writing { style, .. }, .. } = self.task;
        let mut flags = String::new();
        if space.retry != Retry::default() {
            flags += &format!(" --retry {}", space.retry);
        }
        if space.variables != Variables::default() {
            flags += &format!(" --variables {}", space.variables);
        }
        if style.order != TermOrder::default() {
            flags += &format!(" --order {}", style.order);
        }
        if style.ones {
            flags += " --ones";
        }
        flags
    }
}

/// The caps of a space as a table.
fn caps(space: &Space) -> String {
    let Space { coeff: c, degree: d, terms: t, products, factors, .. } = space;
    let between = |count: &Count| match count.min == count.max {
        true => count.max.to_string(),
        false => format!("{} to {}", count.min, count.max),
    };
    format!(
        "| at most | polynomial | product | factor |
|---|---:|---:|---:|
| coefficient | {} | {} | {} |
| degree | {} | | {} |
| terms | | {} | {} |

A polynomial has {} products, and a product {} factors.",
        c.polynomial,
        c.product,
        c.factor,
        d.polynomial,
        d.factor,
        t.product,
        t.factor,
        between(products),
        between(factors)
    )
}

/// The columns in the form of Hugging Face. The columns of a list of structs are listed below it.
fn features(fields: &Fields, indent: &str) -> String {
    let feature = |field: &FieldRef| {
        let kind = match field.data_type() {
            DataType::List(item) => {
                let DataType::Struct(inner) = item.data_type() else { return String::new() };
                format!("list:\n{}", features(inner, &format!("{indent}  ")))
            }
            DataType::UInt32 => "dtype: uint32\n".to_owned(),
            DataType::UInt64 => "dtype: uint64\n".to_owned(),
            _ => "dtype: string\n".to_owned(),
        };
        format!("{indent}- name: {}\n{indent}  {kind}", field.name())
    };
    fields.iter().map(feature).collect()
}

const PROOF_COLUMNS: &str = "\
| column | what it holds |
|---|---|
| `id`, `seed`, `index` | which proof of which stream |
| `config`, `vars`, `setting`, `granularity`, `notation` | the task |
| `start`, `end` | the first state and the normal form; an exercise and its result |
| `steps` | `kind` (KINDS), `input`, `target`, `next` (calculator: the brackets of `target` evaluated) |
";

const STEP_COLUMNS: &str = "\
| column | what it holds |
|---|---|
| `proof`, `step` | the id of the proof, and which step of it |
| `kind` | KINDS |
| `input`, `target` | what a model reads and is to write |
| `next` | calculator: the brackets of `target` evaluated |
";

fn size_category(rows: u64) -> &'static str {
    match rows {
        0..1_000 => "n<1K",
        1_000..10_000 => "1K<n<10K",
        10_000..100_000 => "10K<n<100K",
        100_000..1_000_000 => "100K<n<1M",
        1_000_000..10_000_000 => "1M<n<10M",
        10_000_000..100_000_000 => "10M<n<100M",
        _ => "100M<n<1B",
    }
}
