//! A stream that follows the errors. After each round the model is examined on every class of steps, and in the next round a
//! class is shown the more often the more of its exam was wrong.
//!
//! A round ends at the first border of blocks after `every` examples. What is left of a batch there is dropped. So a round
//! consists of whole blocks, each of them made with the weights of one round, and the place of a run is still (block, offset).
//!
//! Exam r is block r of a stream of its own ([`Purpose::Focus`]), under the guard of training: examples that are neither trained
//! on nor in any test set. [`FocusState`] decides what follows from it.

use polystep_core::{ByClass, CLASSES, ClassWeights, Purpose};
use polystep_engine::{Batch, Limits};
use polystep_record::{LogLine, MixLine, Scores};

use super::{BatchQueue, BlockQueue, Counts, EvalSet, EvalStep, Feed, Moment, Position, Proofs};
use crate::LearnError;
use crate::curriculum::{FocusState, FocusTable};

/// Examples of each class in an exam.
const EXAM: usize = 200;

/// Proofs in a block of exam examples. Part of what a seed means: never to be changed.
const EXAM_PROOFS: u64 = 65_536;

/// The data of a run whose stream follows its errors.
#[derive(Clone, Debug)]
pub struct Focus {
    proofs: Proofs,
    exams: Proofs,
    mix: ClassWeights,
    table: FocusTable,
}

impl Focus {
    /// The stream of `proofs`, whose shares of classes are `mix` before they follow the errors.
    pub fn new(proofs: &Proofs, mix: ClassWeights, table: FocusTable) -> Self {
        let exams = proofs.clone().for_purpose(Purpose::Focus).with_blocks_of(EXAM_PROOFS).first_of_each_class(EXAM);
        Focus { proofs: proofs.clone().pooled(), exams, mix, table }
    }

    /// Before the first example.
    pub fn begin(&self) -> FocusState {
        FocusState::begin(self.mix)
    }
}

/// The feed of such a run.
pub struct FocusedBatches {
    focus: Focus,
    state: FocusState,
    limits: Limits,
    threads: usize,
    /// None between the end of a round and its exam.
    batches: Option<BatchQueue>,
    exams: BlockQueue,
    position: Position,
    counts: Counts,
    seen: ByClass<u64>,
}

impl FocusedBatches {
    /// Starts at a place, with what was drawn and seen before it. `threads` make the batches, one more the exams.
    pub fn start(
        focus: &Focus,
        limits: Limits,
        (state, position): (FocusState, Position),
        (counts, seen): (Counts, ByClass<u64>),
        threads: usize,
    ) -> Result<Self, LearnError> {
        let exams = BlockQueue::start(&focus.exams, state.round, 1)?;
        let focus = focus.clone();
        let mut feed = FocusedBatches { focus, state, limits, threads, batches: None, exams, position, counts, seen };
        let over = position.offset == 0 && feed.examples() >= feed.round_end();
        if !over {
            feed.begin_round()?;
        }
        Ok(feed)
    }

    fn examples(&self) -> u64 {
        self.seen.0.iter().sum()
    }

    /// After this many examples the round ends with its block.
    fn round_end(&self) -> u64 {
        self.state.began.saturating_add(self.focus.table.every)
    }

    fn begin_round(&mut self) -> Result<(), LearnError> {
        self.batches = None; // its threads hand back what they hold before others ask for it
        let source = self.focus.proofs.clone().mixing(self.state.weights);
        let (counted, until) = ((self.counts, self.seen), self.round_end());
        self.batches = Some(BatchQueue::until(&source, self.limits, (self.position, until), counted, self.threads)?);
        Ok(())
    }
}

impl Feed for FocusedBatches {
    /// None at the end of a round too: then an exam is due.
    fn next_unless(&mut self, give_up: &dyn Fn() -> bool) -> Result<Option<&Batch>, LearnError> {
        let Some(batches) = &mut self.batches else { return Ok(None) };
        if !batches.advance(give_up)? {
            return Ok(None);
        }
        (self.position, self.counts, self.seen) = (batches.position(), batches.counts(), batches.seen());
        if batches.is_over() {
            self.batches = None;
        }
        Ok(self.batches.as_ref().map(BatchQueue::batch))
    }

    fn position(&self) -> Position {
        self.position
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn seen(&self) -> ByClass<u64> {
        self.seen
    }

    fn focus(&self) -> Option<&FocusState> {
        Some(&self.state)
    }

    /// At the end of a round: examples of every class, each under the name of its class.
    fn exam(&mut self, give_up: &dyn Fn() -> bool) -> Result<Option<EvalSet>, LearnError> {
        if self.batches.is_some() {
            return Ok(None);
        }
        let Some(block) = self.exams.block(give_up)? else { return Ok(None) };
        block.check("the exam", 0)?;
        let (mut steps, mut counts) = (Vec::new(), ByClass([0; CLASSES]));
        for i in 0..block.len() {
            let class = block.span(i).class;
            if counts.of(class) < EXAM {
                *counts.at(class) += 1;
                let (src, tgt) = block.example(i);
                let kind = class.name().to_owned();
                steps.push(EvalStep { proof: steps.len(), kind, src: src.to_vec(), tgt: tgt.to_vec() });
            }
        }
        Ok(Some(EvalSet { proofs: steps.len(), steps }))
    }

    fn graded(&mut self, at: Moment, scores: &Scores) -> Result<Option<LogLine>, LearnError> {
        let Moment { step, examples, seconds } = at;
        self.state.graded((step, examples), &scores.by_kind, &self.focus.mix, &self.focus.table);
        self.exams.pass();
        self.begin_round()?;
        let mut line = MixLine::new((step, examples, seconds), &self.seen, &self.state.weights);
        for class in &mut line.classes {
            class.accuracy = scores.by_kind.get(class.class.name()).map(|share| share.share());
        }
        Ok(Some(LogLine::Mix(line)))
    }
}

#[cfg(test)]
mod tests {
    use polystep_core::{Space, StepClass, Task};
    use polystep_record::Proportion;

    use super::*;

    const LIMITS: Limits = Limits { sequences: 8, src_tokens: 3000, tgt_tokens: 3000 };
    const TABLE: FocusTable = FocusTable { every: 60, floor: 0.05, smoothing: 0.5 };

    fn focus() -> Focus {
        let task = Task::new(Space::named("no_backtrack").unwrap(), 1);
        let proofs = Proofs::new(&task, 3, 512).unwrap().with_blocks_of(40);
        let mut focus = Focus::new(&proofs, ClassWeights::NATURAL, TABLE);
        focus.exams = focus.exams.with_blocks_of(3000);
        focus
    }

    /// A model that cannot do one class, and everything else.
    fn scores(bad: StepClass) -> Scores {
        let share = |class: StepClass| Proportion::counted(if class == bad { 40 } else { 200 }, 200);
        let asked = StepClass::ALL.into_iter().filter(|&class| class <= StepClass::Sumstep);
        Scores {
            full_proof: share(bad),
            stepwise: share(bad),
            by_kind: asked.map(|class| (class.name().to_owned(), share(class))).collect(),
            loss: 1.0,
            too_long: 0,
            raw: false,
        }
    }

    type Seen = (Batch, Position, Counts, ByClass<u64>, FocusState);

    /// The next batches. In every exam the same class is wrong.
    fn take(feed: &mut FocusedBatches, bad: StepClass, n: usize) -> Vec<Seen> {
        let mut taken = Vec::new();
        while taken.len() < n {
            if let Some(exam) = feed.exam(&|| false).unwrap() {
                assert!(exam.steps.iter().filter(|s| s.kind == "facstep").count() == EXAM);
                let at = Moment { step: taken.len() as u64 + 1000, examples: feed.examples(), seconds: 1.0 };
                assert!(matches!(feed.graded(at, &scores(bad)).unwrap(), Some(LogLine::Mix(_))));
            }
            if let Some(batch) = feed.next_unless(&|| false).unwrap().cloned() {
                assert_eq!(batch.src.sequences(), 8, "no batch is cut short by the end of a round");
                taken.push((batch, feed.position, feed.counts, feed.seen, feed.state));
            }
        }
        taken
    }

    fn start(focus: &Focus, threads: usize) -> FocusedBatches {
        let place = (focus.begin(), Position::default());
        FocusedBatches::start(focus, LIMITS, place, (Counts::default(), ByClass::default()), threads).unwrap()
    }

    #[test]
    fn the_stream_follows_the_errors() {
        let focus = focus();
        let taken = take(&mut start(&focus, 1), StepClass::Mul3Multi3, 400);
        let (.., seen, state) = taken.last().unwrap();
        let (first, half) = (&taken.iter().rfind(|batch| batch.4.round == 0).unwrap().3, &taken[200].3);
        let examples = |seen: &ByClass<u64>| seen.0.iter().sum::<u64>();
        let natural = first.of(StepClass::Mul3Multi3) as f64 / examples(first) as f64;
        let hard = seen.of(StepClass::Mul3Multi3) - half.of(StepClass::Mul3Multi3);
        let focused = hard as f64 / (examples(seen) - examples(half)) as f64;
        assert!(focused > 0.15 && focused > 3.0 * natural, "{natural} {focused}");
        assert_eq!(state.weights.of(StepClass::Mul3Multi3), 1.0);
        let facsteps = state.weights.of(StepClass::Facstep);
        assert!(facsteps == TABLE.floor, "{facsteps}");
        assert!(seen.of(StepClass::Facstep) > half.of(StepClass::Facstep), "no class dies");
        assert!(state.round > 5 && state.examined > 0);
    }

    #[test]
    fn any_place_continues_as_if_nothing_had_happened() {
        let focus = focus();
        let all = take(&mut start(&focus, 1), StepClass::Sumstep, 90);
        assert_eq!(all, take(&mut start(&focus, 3), StepClass::Sumstep, 90));
        let ends: Vec<usize> = (1..90).filter(|&i| all[i].4.round > all[i - 1].4.round).collect();
        assert!(ends.len() > 3, "{ends:?}");
        for stop in [3, ends[1] - 1, ends[1], ends[2] + 1] {
            let (_, position, counts, seen, state) = all[stop];
            let mut feed = FocusedBatches::start(&focus, LIMITS, (state, position), (counts, seen), 2).unwrap();
            let mut again = take(&mut feed, StepClass::Sumstep, 6);
            // The step of an exam is the trainer's to tell.
            let rest = all[stop + 1..stop + 7].iter().cloned();
            again.iter_mut().zip(rest).for_each(|(again, rest)| {
                again.4.examined = rest.4.examined;
                assert_eq!(*again, rest);
            });
        }
    }
}
