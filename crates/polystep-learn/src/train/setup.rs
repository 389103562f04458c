//! A run before it starts: the programs, sets, data and size of memory that its configuration asks for.

use std::path::Path;

use polystep_core::{Examples, Purpose, Sampler, SpaceError, Task};
use polystep_engine::{Limits, Program};

use super::RunState;
use crate::LearnError;
use crate::config::{ConfigError, RunConfig};
use crate::feed::{BatchQueue, Curriculum, Dataset, DatasetSummary, EvalSet, Feed, Lessons, Proofs, Source, Syllabus};
use crate::model::{ModelConfig, ParamLayout, evaluation_program, initial_params, training_program};
use crate::weights::load_weights;
use polystep_record::RunFolder;

/// Proofs whose lengths decide how much memory is set up.
const MEASURED: u64 = 1024;

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
        let data = |e: SpaceError| LearnError::Data(e.to_string());
        let source = Proofs::guarded(&tasks, &config.guarded()?, config.data.seed, model.max_positions)?;
        let each = config.train.valid_proofs.div_ceil(tasks.len() as u64);
        let valid = EvalSet::fixed(&tasks, Purpose::Valid, each).map_err(data)?;
        let longest = model.max_positions;
        let (mut curriculum, mut dataset) = (None, None);
        let (mut limits, training): (_, Box<dyn Source>) = match &config.data.file {
            None => (limits(&tasks, &config)?, Box::new(source.clone())),
            Some(path) => {
                let data = Dataset::open(path, &tasks[0].writing, source.guard(), config.data.seed, longest)?;
                dataset = Some(data.summary().clone());
                (data.limits(config.train.batch, longest), Box::new(data))
            }
        };
        if let Some((graph, settings, tasks)) = config.curriculum()? {
            source.check_room(&tasks)?;
            for task in &tasks {
                limits = larger(limits, self::limits(std::slice::from_ref(task), &config)?);
            }
            let syllabus = Syllabus::new(graph, settings, config.train.batch, config.data.seed);
            curriculum = Some(Curriculum::new(syllabus, &source, &tasks));
        }
        let layout = ParamLayout::new(&model);
        Ok(RunSetup { config, tasks, layout, model, limits, source: training, dataset, curriculum, valid, test: None })
    }

    /// The weights before the first step: drawn, or those of `train.init`.
    pub(super) fn first_params(&self) -> Result<Vec<f32>, LearnError> {
        match &self.config.train.init {
            None => Ok(initial_params(&self.model, &self.layout, self.seed())),
            Some(folder) => Ok(load_weights(&RunFolder::new(folder).model(), &self.layout)?.params),
        }
    }

    /// The state before the first step.
    pub(super) fn first_state(&self) -> RunState {
        let course = self.curriculum.as_ref().map(|curriculum| curriculum.syllabus.begin());
        let dataset = self.dataset.as_ref().map(|dataset| dataset.checksum.clone());
        RunState { seed: self.seed(), limits: self.limits, course, dataset, ..RunState::default() }
    }

    /// The batches from where a state left off; `threads` make them.
    pub(super) fn feed(&self, state: &RunState, threads: usize) -> Result<Box<dyn Feed>, LearnError> {
        let RunState { position, counts, .. } = *state;
        Ok(match (&self.curriculum, &state.course) {
            (Some(curriculum), Some(course)) => {
                Box::new(Lessons::start(curriculum, self.limits, course.clone(), counts)?)
            }
            _ => Box::new(BatchQueue::start(self.source.as_ref(), self.limits, position, counts, threads)?),
        })
    }

    /// What the executor runs: [`super::TRAINING`] and [`super::EVALUATION`].
    pub fn programs(&self) -> Vec<Program> {
        vec![
            training_program(&self.model, &self.layout, Some(self.config.optimiser())).program,
            evaluation_program(&self.model, &self.layout).program,
        ]
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.config.data.seed
    }

    /// An error if a checkpoint cannot have come from this run.
    pub(super) fn check_resume(&self, state: &RunState, path: &Path) -> Result<(), LearnError> {
        let mismatch = |why: String| Err(LearnError::Mismatch { path: path.into(), why });
        if state.seed != self.seed() {
            return mismatch(format!("its seed is {}, not {}", state.seed, self.seed()));
        }
        if state.dataset.as_ref() != self.dataset.as_ref().map(|dataset| &dataset.checksum) {
            return mismatch(
                "its data is not the data of data.file, which has changed since or is another file".into(),
            );
        }
        if state.limits != self.limits {
            return mismatch("its batches were cut for other data or another batch size".into());
        }
        let same_curriculum = match (&self.curriculum, &state.course) {
            (Some(curriculum), Some(course)) => curriculum.syllabus.accepts(course),
            (curriculum, course) => curriculum.is_none() && course.is_none(),
        };
        if !same_curriculum {
            return mismatch("it was trained by another curriculum".into());
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

/// Limits with room for both.
fn larger(a: Limits, b: Limits) -> Limits {
    Limits {
        sequences: a.sequences.max(b.sequences),
        src_tokens: a.src_tokens.max(b.src_tokens),
        tgt_tokens: a.tgt_tokens.max(b.tgt_tokens),
    }
}

/// Memory for batches of `train.batch` examples: their mean number of tokens, plus eight standard deviations, plus one longest
/// example. It depends on the configuration alone, since it decides where a batch ends (though almost never). An error if none
/// of the measured examples is short enough to be learned.
fn limits(tasks: &[Task], config: &RunConfig) -> Result<Limits, LearnError> {
    let mut examples = Examples::default();
    for task in tasks {
        let sampler = Sampler::new(task, config.data.seed, Purpose::Train);
        let mut sampler = sampler.map_err(|e| LearnError::Data(e.to_string()))?;
        for proof in 0..MEASURED.div_ceil(tasks.len() as u64) {
            sampler.write_examples(proof, None, &mut examples);
        }
    }
    let (longest, batch) = (config.model.max_positions, config.train.batch);
    if (0..examples.len()).all(|i| examples.src(i).len().max(examples.tgt(i).len()) >= longest) {
        return Err(LearnError::Config(ConfigError::new(format!(
            "model.max_positions = {longest} is too short: no example of the task has so few tokens"
        ))));
    }
    let tokens = |length: &dyn Fn(usize) -> usize| {
        let lengths: Vec<f64> =
            (0..examples.len()).map(|i| length(i) + 1).filter(|&n| n <= longest).map(|n| n as f64).collect();
        let n = lengths.len().max(1) as f64;
        let mean = lengths.iter().sum::<f64>() / n;
        let deviation = (lengths.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
        let b = batch as f64;
        let enough = (b * mean + 8.0 * deviation * b.sqrt()).ceil() as usize + longest;
        enough.min(batch * longest).next_multiple_of(64)
    };
    Ok(Limits {
        sequences: batch,
        src_tokens: tokens(&|i| examples.src(i).len()),
        tgt_tokens: tokens(&|i| examples.tgt(i).len()),
    })
}
