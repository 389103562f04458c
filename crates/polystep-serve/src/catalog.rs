//! The models that can be asked: the bundled ones, and those of the user's runs.
//!
//! A model is named by its folder: `all-spaces` is bundled, `runs/fast` is the run `fast`. Names are only compared with what
//! is there, so no name can lead anywhere else. Weights are read when a model is first asked for; a few models stay in memory.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use polystep_core::{Setting, State, Task, Writing};
use polystep_learn::LearnError;
use polystep_learn::prove::{KnownModel, fitting, known_models};
use polystep_learn::trained::TrainedModel;
use polystep_record::RunFolder;

use crate::decoder::Decoder;
use crate::error::Refusal;

/// Models whose weights are in memory at once.
const LOADED: usize = 6;
/// How long the list of the runs' models is believed.
const FRESH: Duration = Duration::from_secs(3);

/// A model by its name.
#[derive(Clone, Debug)]
pub struct NamedModel {
    /// As the API calls it.
    pub name: String,
    /// What is known without its weights.
    pub known: KnownModel,
}

impl NamedModel {
    /// Its own task.
    pub fn home(&self) -> &Task {
        &self.known.tasks[0]
    }
}

/// A model that is ready, and why it was chosen.
pub struct ReadyModel {
    /// Its name.
    pub name: String,
    /// Why it is this one.
    pub why: String,
    /// What decodes with it.
    pub decoder: Arc<Decoder>,
}

/// All models.
pub struct Catalog {
    bundled: Vec<Arc<NamedModel>>,
    runs: Option<PathBuf>,
    threads: usize,
    of_runs: Mutex<Option<(Instant, Vec<Arc<NamedModel>>)>>,
    /// The decoders, the one asked last at the end.
    loaded: Mutex<Vec<(String, Arc<Decoder>)>>,
}

impl Catalog {
    /// The models of these folders. A bundled model that is damaged is an error; a run's is left out.
    pub fn open(models: Option<PathBuf>, runs: Option<PathBuf>, threads: usize) -> Result<Catalog, LearnError> {
        let known = models.map(|folder| known_models(&folder)).transpose()?.unwrap_or_default();
        let named = |known: KnownModel| Arc::new(NamedModel { name: RunFolder::new(&known.folder).name(), known });
        let bundled = known.into_iter().filter(proves).map(named).collect();
        Ok(Catalog { bundled, runs, threads, of_runs: Mutex::default(), loaded: Mutex::default() })
    }

    /// All models, the bundled ones first.
    pub fn models(&self) -> Vec<Arc<NamedModel>> {
        let mut all = self.bundled.clone();
        let mut of_runs = self.of_runs.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, runs) = match of_runs.take().filter(|(read, _)| read.elapsed() < FRESH) {
            Some(known) => of_runs.insert(known),
            None => of_runs.insert((Instant::now(), self.read_runs())),
        };
        all.extend(runs.iter().cloned());
        all
    }

    fn read_runs(&self) -> Vec<Arc<NamedModel>> {
        let entries = self.runs.as_ref().and_then(|runs| runs.read_dir().ok());
        let mut folders: Vec<PathBuf> = entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        folders.sort();
        let finished = |folder: &PathBuf| RunFolder::new(folder).has_model() && RunFolder::new(folder).is_finished();
        let known = folders.into_iter().filter(finished).filter_map(|folder| KnownModel::open(folder).ok());
        let name = |known: &KnownModel| Some(format!("runs/{}", known.folder.file_name()?.to_str()?));
        known.filter(proves).filter_map(|known| Some(Arc::new(NamedModel { name: name(&known)?, known }))).collect()
    }

    /// The model of this name, or without a name the bundled one that fits the start.
    pub fn choose(&self, name: Option<&str>, start: &State) -> Result<ReadyModel, Refusal> {
        let (model, why) = match name {
            Some(name) => {
                let found = self.models().into_iter().find(|model| model.name == name);
                let unknown = || Refusal::not_found(format!("there is no model {name}: /api/models lists them"));
                (found.ok_or_else(unknown)?, "chosen by you".to_owned())
            }
            None => {
                let plain = |task: &Task| task.writing == Writing::default();
                let known = self.bundled.iter().map(|model| &model.known);
                let (best, why) = fitting(known, start, plain)
                    .map_err(Refusal::unprocessable)?
                    .ok_or_else(|| Refusal::not_found("there is no model that could be chosen: name one"))?;
                let named = self.bundled.iter().find(|model| model.known.folder == best.folder);
                (named.expect("it was chosen among these").clone(), why)
            }
        };
        let decoder = self.decoder(&model)?;
        Ok(ReadyModel { name: model.name.clone(), why, decoder })
    }

    /// The decoder of a model, started if it is not running. The one that was not asked for longest makes room.
    fn decoder(&self, model: &NamedModel) -> Result<Arc<Decoder>, Refusal> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let decoder = match loaded.iter().position(|(name, _)| *name == model.name) {
            Some(at) => loaded.remove(at).1,
            None => {
                let trained = TrainedModel::open(&model.known.folder).map_err(Refusal::internal)?;
                if loaded.len() == LOADED {
                    loaded.remove(0);
                }
                Arc::new(Decoder::start(trained, self.threads).map_err(Refusal::internal)?)
            }
        };
        loaded.push((model.name.clone(), decoder.clone()));
        Ok(decoder)
    }

    /// Starts the decoder of the model that is chosen for the page's example.
    pub fn warm_up(&self) {
        if let Ok(example) = polystep_core::typed::read("(x+1)*(x+2)+3*x") {
            // Without a model the page says so.
            let _ = self.choose(None, example.state());
        }
    }
}

/// Whether a model has learned proofs.
fn proves(known: &KnownModel) -> bool {
    known.tasks[0].writing.setting != Setting::Arithmetic
}
