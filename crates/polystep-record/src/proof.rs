//! Proofs as `polystep generate` writes them: one JSON object per line.
//!
//! Infix states have no blanks, and prefix states are tokens joined by one blank. So text and tokens determine each other.

use polystep_core::{
    Granularity, Guard, Line, Notation, Proof, Purpose, Sampler, Setting, StepKind, Style, Writing, WrittenProof, token,
};
use serde::{Deserialize, Serialize};

/// A proof.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProofRecord {
    /// `config:vars:purpose:seed:index`
    pub id: String,
    /// The seed of its stream.
    pub seed: u64,
    /// Its place in the stream.
    pub index: u64,
    /// The space it was drawn from.
    pub config: String,
    /// How many variables.
    pub vars: usize,
    /// What its steps look like.
    pub setting: Setting,
    /// How large they are.
    pub granularity: Granularity,
    /// How states are written.
    pub notation: Notation,
    /// The order of terms and the writing of ones, where it is not the default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub style: Style,
    /// The first state, without tag.
    pub start: String,
    /// The last state, without tag.
    pub end: String,
    /// The steps.
    pub steps: Vec<StepRecord>,
}

/// A step of a proof.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StepRecord {
    /// What it does.
    pub kind: StepKind,
    /// What a model reads.
    pub input: String,
    /// What it is to write.
    pub target: String,
    /// With the brackets evaluated, the next input (calculator only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

fn is_default(style: &Style) -> bool {
    *style == Style::default()
}

/// The id of a proof.
pub fn proof_id(config: &str, vars: usize, purpose: Purpose, seed: u64, index: u64) -> String {
    format!("{config}:{vars}:{}:{seed}:{index}", purpose.name())
}

impl StepRecord {
    /// A line as text.
    pub fn new(line: &Line, notation: Notation) -> StepRecord {
        StepRecord {
            kind: line.kind,
            input: token::decode(&line.input, notation),
            target: token::decode(&line.target, notation),
            next: line.next.as_ref().map(|next| token::decode(next, notation)),
        }
    }

    /// All its states.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        [&self.input, &self.target].into_iter().chain(&self.next).map(String::as_str)
    }
}

impl ProofRecord {
    /// How the proof is written.
    pub fn writing(&self) -> Writing {
        let ProofRecord { setting, granularity, notation, style, .. } = *self;
        Writing { setting, granularity, notation, style }
    }

    /// The proof of an expression that a person typed.
    pub fn typed(proof: &Proof, writing: &Writing) -> ProofRecord {
        let Writing { setting, granularity, notation, style } = *writing;
        ProofRecord {
            id: "typed".into(),
            seed: 0,
            index: 0,
            config: "typed".into(),
            vars: proof.start().vars().max(1),
            setting,
            granularity,
            notation,
            style,
            start: writing.print(proof.start()),
            end: writing.print(proof.end()),
            steps: writing.lines(proof).map(|line| StepRecord::new(&line, notation)).collect(),
        }
    }

    /// Proof `index` of a sampler.
    pub fn of(sampler: &mut Sampler, index: u64) -> ProofRecord {
        ProofRecord::drawn(sampler, index, None).expect("without a guard nothing is refused")
    }

    /// Proof `index` as a training record. It is drawn again while its endpoint is guarded; none if the guard leaves nothing
    /// to draw.
    pub fn guarded(sampler: &mut Sampler, index: u64, guard: &Guard) -> Option<ProofRecord> {
        ProofRecord::drawn(sampler, index, Some(guard))
    }

    fn drawn(sampler: &mut Sampler, index: u64, guard: Option<&Guard>) -> Option<ProofRecord> {
        let WrittenProof { lines, start, end } = sampler.written(index, guard)?;
        let (vars, config) = (sampler.task().vars, sampler.task().space.key.clone());
        let Writing { setting, granularity, notation, style } = sampler.task().writing;
        Some(ProofRecord {
            id: proof_id(&config, vars, sampler.purpose(), sampler.seed(), index),
            seed: sampler.seed(),
            index,
            config,
            vars,
            setting,
            granularity,
            notation,
            style,
            start,
            end,
            steps: lines.iter().map(|line| StepRecord::new(line, notation)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polystep_core::{Space, Task};

    #[test]
    fn a_record_is_one_line_of_json() {
        let mut task = Task::new(Space::named("small_coeff").unwrap(), 1);
        task.writing.setting = Setting::Calculator;
        let record = ProofRecord::of(&mut Sampler::new(&task, 1, Purpose::Train).unwrap(), 3);
        let json = serde_json::to_string(&record).unwrap();
        assert!(
            json.starts_with(r#"{"id":"small_coeff:1:train:1:3","seed":1,"index":3,"config":"small_coeff","vars":1,"#),
            "{json}"
        );
        assert!(
            json.contains(r#""setting":"calculator","granularity":"coarse","notation":"infix","start":"("#),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<ProofRecord>(&json).unwrap(), record);
        assert_eq!(record.steps.last().unwrap().next.as_deref(), Some(record.end.as_str()));
    }
}
