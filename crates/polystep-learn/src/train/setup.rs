//! A run before it starts: the programs, sets, data and size of memory that its configuration asks for.

use std::path::Path;

use polystep_core::{ByClass, Examples, Purpose, Sampler, StepClass, Streams, Task};
use polystep_engine::{Limits, Program};

use super::{Checkpoint, RunState};
use crate::LearnError;
use crate::config::{ConfigError, Logits, RunConfig};
use crate::feed::{
    BatchQueue, Curriculum, Dataset, DatasetSummary, EvalSet, Feed, Focus, FocusedBatches, Lessons, Proofs, Source,
    Syllabus,
};
use crate::model::{ModelConfig, ParamLayout, evaluation_program, initial_params, training_program};
use crate::weights::load_weights;
use polystep_record::RunFolder;

/// Proofs whose lengths decide how much memory is set up.
const MEASURED: u64 = 1024;
/// The same for a run that learns from some classes of steps more often than from others.
const MIX_MEASURED: u64 = 32 * MEASURED;

/// All that a run needs beside a device and a folder.
pub struct RunSetup {
    /// The configuration.
    pub config: RunConfig,
    /// The task, and those that are learned beside it.
    pub tasks: Vec<Task>,
    /// The model.
    pub model: ModelConfig,
    /// Where its parameters are.
    pub layout: ParamLayout,
    /// The largest batch.
    pub limits: Limits,
    /// Training data.
    pub source: Box<dyn Source>,
    /// What the files hold that it learns from, if it draws nothing itself.
    pub dataset: Option<DatasetSummary>,
    /// The curriculum, if there is one: then it supplies the training data.
    pub curriculum: Option<Curriculum>,
    /// The stream that follows the errors, if there is one: then it supplies the training data.
    pub focus: Option<Focus>,
    /// The validation set.
    pub valid: EvalSet,
    /// The test set; none for a run that is not to see it.
    pub test: Option<EvalSet>,
}

impl RunSetup {
    /// Prepares a run. Takes a moment: the guard and both sets are computed.
    pub fn new(config: RunConfig) -> Result<Self, LearnError> {
        let mut setup = RunSetup::without_test(config)?;
        let test =
            EvalSet::fixed(&setup.tasks, Purpose::Test, u64::MAX).map_err(|e| LearnError::Data(e.to_string()))?;
        setup.test = Some(test);
        Ok(setup)
    }

    /// Prepares a run that is compared with others, of which one will be chosen. It is validated, but never tested.
    pub fn without_test(config: RunConfig) -> Result<Self, LearnError> {
        let tasks = config.tasks()?;
        let model = config.model.clone();
        let source = config.proofs()?;
        let valid = RunSetup::validation_set(&config)?;
        let longest = model.max_positions;
        let (mut curriculum, mut dataset) = (None, None);
        let (mut limits, training): (_, Box<dyn Source>) = match &config.data.file {
            None => (limits(&tasks, &config.task_weights(), &config)?, Box::new(source.clone())),
            Some(path) => {
                let data = Dataset::open(path, &tasks[0].writing, source.guard(), config.data.seed, longest)?;
                dataset = Some(data.summary().clone());
                (data.limits(largest_batch(&config), longest), Box::new(data))
            }
        };
        if let Some((graph, settings, tasks)) = config.curriculum()? {
            source.check_room(&tasks)?;
            for task in &tasks {
                limits = larger(limits, self::limits(std::slice::from_ref(task), &[1.0], &config)?);
            }
            let syllabus = Syllabus::new(graph, settings, config.train.batch, config.data.seed);
            curriculum = Some(Curriculum::new(syllabus, &source, &tasks));
        }
        let focus = config.train.focus.map(|table| Focus::new(&source, config.class_weights(), table));
        let layout = ParamLayout::new(&model);
        let (source, test) = (training, None);
        Ok(RunSetup { config, tasks, layout, model, limits, source, dataset, curriculum, focus, valid, test })
    }

    /// The set that a run is validated on: `train.valid_proofs`, in equal parts of its tasks.
    pub fn validation_set(config: &RunConfig) -> Result<EvalSet, LearnError> {
        let tasks = config.tasks()?;
        let each = config.train.valid_proofs.div_ceil(tasks.len() as u64);
        EvalSet::fixed(&tasks, Purpose::Valid, each).map_err(|e| LearnError::Data(e.to_string()))
    }

    /// The weights before the first step: drawn, or those of `train.init`.
    pub(super) fn first_params(&self) -> Result<Vec<f32>, LearnError> {
        match &self.config.train.init {
            None => Ok(initial_params(&self.model, &self.layout, self.seed())),
            Some(folder) => {
                self.check_guard_of(folder)?;
                Ok(load_weights(&RunFolder::new(folder).model(), &self.layout)?.params)
            }
        }
    }

    /// An error if the model in a folder was trained under a narrower guard than this run: it may have met sets that this run
    /// promises to keep away.
    fn check_guard_of(&self, folder: &Path) -> Result<(), LearnError> {
        let (theirs, ours) = (RunConfig::stored(folder)?.data.guard.scope, self.config.data.guard.scope);
        if theirs >= ours {
            return Ok(());
        }
        let name = folder.display();
        Err(LearnError::Config(ConfigError::new(format!(
            "train.init: {name} was trained under data.guard = \"{theirs}\" and may have met sets that \"{ours}\" keeps away: set \
             data.guard = \"{theirs}\""
        ))))
    }

    /// The state before the first step.
    pub(super) fn first_state(&self) -> RunState {
        let course = self.curriculum.as_ref().map(|curriculum| curriculum.syllabus.begin());
        let dataset = self.dataset.as_ref().map(|dataset| dataset.checksum.clone());
        let seen = self.mixes().then(ByClass::default);
        let focus = self.focus.as_ref().map(Focus::begin);
        let (seed, limits, batches) = (self.seed(), self.limits, self.batches());
        RunState { seed, limits, batches, course, seen, focus, dataset, ..RunState::default() }
    }

    /// Whether it learns from some classes of steps more often than from others. Then it counts them.
    fn mixes(&self) -> bool {
        !self.config.data.mix.is_empty() || self.focus.is_some()
    }

    /// Examples in a batch early and late, if they differ.
    fn batches(&self) -> Option<[usize; 2]> {
        Some(self.config.train.batches()).filter(|[early, late]| early != late)
    }

    /// The limits by which batches are cut. Those of the early part and of the late part differ in their examples alone: memory is
    /// set up for the larger ones.
    fn cut(&self, late: bool) -> Limits {
        Limits { sequences: self.config.train.batches()[usize::from(late)], ..self.limits }
    }

    /// The batches from where a state left off, as large as they are early or late in the budget; `threads` make them.
    pub(super) fn feed(&self, state: &RunState, late: bool, threads: usize) -> Result<Box<dyn Feed>, LearnError> {
        let RunState { position, counts, .. } = *state;
        let counted = (counts, state.seen.unwrap_or_default());
        if let (Some(focus), Some(place)) = (&self.focus, state.focus) {
            return Ok(Box::new(FocusedBatches::start(focus, self.cut(late), (place, position), counted, threads)?));
        }
        Ok(match (&self.curriculum, &state.course) {
            (Some(curriculum), Some(course)) => {
                Box::new(Lessons::start(curriculum, self.limits, course.clone(), counts)?)
            }
            _ => Box::new(BatchQueue::resume(self.source.as_ref(), self.cut(late), position, counted, threads)?),
        })
    }

    /// What the executor runs: [`super::TRAINING`] and [`super::EVALUATION`].
    pub fn programs(&self) -> Vec<Program> {
        let programs = [
            training_program(&self.model, &self.layout, Some(self.config.optimiser())),
            evaluation_program(&self.model, &self.layout),
        ];
        let fp32 = self.config.train.logits == Logits::Fp32;
        programs.map(|p| if fp32 { p.with_fp32_logits() } else { p }.program).into()
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.config.data.seed
    }

    /// An error if a checkpoint cannot have come from this run.
    pub(super) fn check_resume(&self, checkpoint: &Checkpoint, path: &Path) -> Result<(), LearnError> {
        let Checkpoint { state, average, .. } = checkpoint;
        let mismatch = |why: String| Err(LearnError::Mismatch { path: path.into(), why });
        if state.seed != self.seed() {
            return mismatch(format!("its seed is {}, not {}", state.seed, self.seed()));
        }
        if state.dataset.as_ref() != self.dataset.as_ref().map(|dataset| &dataset.checksum) {
            return mismatch(
                "its data is not the data of data.file, which has changed since or is another file".into(),
            );
        }
        if state.limits != self.limits || state.batches != self.batches() {
            return mismatch("its batches were cut for other data or another batch size".into());
        }
        if average.is_some() != self.config.train.ema.is_some() {
            let (has, asked) = if average.is_some() { ("an", "no") } else { ("no", "a") };
            return mismatch(format!("it keeps {has} average of the weights, and this run has {asked} train.ema"));
        }
        let same_curriculum = match (&self.curriculum, &state.course) {
            (Some(curriculum), Some(course)) => curriculum.syllabus.accepts(course),
            (curriculum, course) => curriculum.is_none() && course.is_none(),
        };
        if !same_curriculum {
            return mismatch("it was trained by another curriculum".into());
        }
        if state.seen.is_some() != self.mixes() || state.focus.is_some() != self.focus.is_some() {
            return mismatch("it was trained with another [data.mix] or [train.focus]".into());
        }
        let train = &self.config.train;
        let batch = self.limits.sequences as u64;
        for (what, done, budget, beyond) in
            [("steps", state.step, train.steps, 0), ("examples", state.examples, train.examples, batch - 1)]
        {
            if let Some(budget) = budget.filter(|budget| done > budget.saturating_add(beyond)) {
                return mismatch(format!("it has done {done} {what}, and the budget is {budget}"));
            }
        }
        Ok(())
    }
}

impl RunConfig {
    /// The stream of proofs that a run draws, guarded and mixed.
    pub fn proofs(&self) -> Result<Proofs, LearnError> {
        let proofs = Proofs::guarded(
            &self.tasks()?,
            (self.data.guard.scope, &self.guarded()?),
            self.data.seed,
            self.model.max_positions,
        )?;
        Ok(proofs.weighted(self.task_weights()).mixing(self.class_weights()))
    }
}

/// Limits with room for both.
fn larger(a: Limits, b: Limits) -> Limits {
    Limits {
        sequences: a.sequences.max(b.sequences),
        src_tokens: a.src_tokens.max(b.src_tokens),
        tgt_tokens: a.tgt_tokens.max(b.tgt_tokens),
    }
}

/// Examples in the largest batch, early or late.
fn largest_batch(config: &RunConfig) -> usize {
    config.train.batches().into_iter().max().unwrap_or(config.train.batch)
}

/// Memory for the largest batches of a run: their mean number of tokens, plus eight standard deviations, plus one longest
/// example. It depends on the configuration alone, since it decides where a batch ends (though almost never). Where the shares
/// of the classes change, there is room for batches of each single class. An error if none of the measured examples is short
/// enough to be learned.
fn limits(tasks: &[Task], shares: &[f64], config: &RunConfig) -> Result<Limits, LearnError> {
    let (mut examples, classes, focused) = (Examples::default(), config.class_weights(), config.train.focus.is_some());
    // A mix leaves out most of what is drawn, and what it keeps is longer.
    let measured = if classes.is_natural() && !focused { MEASURED } else { MIX_MEASURED } as f64;
    let total: f64 = shares.iter().sum();
    for (task, share) in tasks.iter().zip(shares) {
        let sampler = Sampler::new(task, config.data.seed, Purpose::Train);
        let mut sampler = sampler.map_err(|e| LearnError::Data(e.to_string()))?;
        if !classes.is_natural() {
            let stream = Streams::new(config.data.seed, Purpose::Shuffle, "measured").at(0);
            sampler.thin(Some(classes.thinning(stream)));
        }
        for proof in 0..(measured * share / total).ceil() as u64 {
            sampler.write_examples(proof, None, &mut examples);
        }
    }
    let (longest, batch) = (config.model.max_positions, largest_batch(config));
    let refuse = |why: String| Err(LearnError::Config(ConfigError::new(why)));
    if examples.is_empty() {
        return refuse("[data.mix] leaves nothing to learn from: no class of the task has a weight above 0".into());
    }
    let lengths: Vec<(StepClass, [usize; 2])> =
        examples.spans.iter().map(|s| (s.class, [s.src_len, s.tgt_len].map(|n| usize::from(n) + 1))).collect();
    if lengths.iter().all(|(_, [src, tgt])| src.max(tgt) > &longest) {
        return refuse(format!(
            "model.max_positions = {longest} is too short: no example of the task has so few tokens"
        ));
    }
    let room = |of: &dyn Fn(StepClass) -> bool| {
        let [src_tokens, tgt_tokens] = [0, 1].map(|side| {
            let lengths = lengths.iter().filter(|(class, _)| of(*class)).map(|(_, length)| length[side]);
            tokens(lengths.filter(|&n| n <= longest), batch, longest)
        });
        Limits { sequences: batch, src_tokens, tgt_tokens }
    };
    let all = room(&|_| true);
    Ok(if focused { StepClass::ALL.iter().fold(all, |most, one| larger(most, room(&|c| c == *one))) } else { all })
}

/// Tokens of a batch whose examples have such lengths on one side.
fn tokens(lengths: impl Iterator<Item = usize>, batch: usize, longest: usize) -> usize {
    let lengths: Vec<f64> = lengths.map(|n| n as f64).collect();
    let n = lengths.len().max(1) as f64;
    let mean = lengths.iter().sum::<f64>() / n;
    let deviation = (lengths.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    let b = batch as f64;
    let enough = (b * mean + 8.0 * deviation * b.sqrt()).ceil() as usize + longest;
    enough.min(batch * longest).next_multiple_of(64)
}
