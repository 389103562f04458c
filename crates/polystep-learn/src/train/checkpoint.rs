//! A checkpoint: all that a run needs to continue bit for bit. It holds the weights, Adam's moments, the average of the weights
//! if the run keeps one, and the [`RunState`]. It holds no data, since data depends on its position alone, and no random state,
//! since every stream is keyed.
//!
//! `checkpoints/step-NNNNNNNNN.safetensors` are the last two checkpoints. `best-NNNNNNNNN.safetensors` are weights only. The
//! best weights are written just before the first checkpoint that refers to them, so any checkpoint on the disk finds its best.

use std::path::{Path, PathBuf};

use safetensors::Dtype;

use super::RunState;
use crate::LearnError;
use crate::tensors::{Metadata, Tensor, TensorFile, floats, save};
use polystep_record::whole::sweep;
use polystep_record::{RecordError, RunFolder};

/// Everything that a run needs to continue.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The state of the run.
    pub state: RunState,
    /// The flat parameters.
    pub params: Vec<f32>,
    /// Adam's first moment.
    pub first: Vec<f32>,
    /// Adam's second moment.
    pub second: Vec<f32>,
    /// The average of the weights, in a run with `train.ema`.
    pub average: Option<Vec<f32>>,
}

impl Checkpoint {
    /// Writes the file in one piece.
    pub fn save(&self, path: &Path) -> Result<(), LearnError> {
        let state = serde_json::to_string(&self.state).map_err(|e| LearnError::Data(e.to_string()))?;
        let metadata = Metadata::from([("state".into(), state), ("polystep".into(), env!("CARGO_PKG_VERSION").into())]);
        let shape = [self.params.len()];
        let tensor = |name, values| Tensor { name, dtype: "F32", shape: &shape, bytes: bytemuck::cast_slice(values) };
        let average = self.average.as_deref().map(|average| tensor("average", average));
        let others = [tensor("first", &self.first), tensor("params", &self.params), tensor("second", &self.second)];
        save(path, metadata, &average.into_iter().chain(others).collect::<Vec<_>>())
    }

    /// Reads the file. Checks every byte, and that a training can have reached this state. `params` is the number of parameters that
    /// the model has.
    pub fn load(path: &Path, params: usize) -> Result<Self, LearnError> {
        let file = TensorFile::read(path)?;
        let damaged = |why: &str| LearnError::Damaged { path: path.into(), why: why.into(), help: String::new() };
        if !file.verified {
            return Err(damaged("it has no checksum"));
        }
        let state = file.metadata.get("state").ok_or_else(|| damaged("it holds no state"))?;
        let state: RunState = serde_json::from_str(state).map_err(|e| damaged(&format!("its state: {e}")))?;
        let tensors = file.tensors();
        let read = |name: &str| -> Result<Vec<f32>, LearnError> {
            let tensor = tensors.tensor(name).map_err(|_| damaged(&format!("it holds no {name}")))?;
            let values = Some(tensor.dtype()).filter(|&t| t == Dtype::F32).and_then(|t| floats(t, tensor.data()));
            let values = values.ok_or_else(|| damaged(&format!("{name} is not F32")))?;
            if values.len() != params {
                let why = format!("its model has {} numbers where this one has {params}", values.len());
                return Err(LearnError::Mismatch { path: path.into(), why });
            }
            if values.iter().any(|x| !x.is_finite()) {
                return Err(damaged(&format!("{name} holds a number that is not finite")));
            }
            Ok(values)
        };
        let average = tensors.tensor("average").is_ok().then(|| read("average")).transpose()?;
        let (params, first, second) = (read("params")?, read("first")?, read("second")?);
        let checkpoint = Checkpoint { state, params, first, second, average };
        match checkpoint.state.contradiction() {
            Some(why) => Err(damaged(&why)),
            None if checkpoint.second.iter().any(|&x| x < 0.0) => Err(damaged("second holds a negative number")),
            None => Ok(checkpoint),
        }
    }
}

/// The folder `checkpoints/` of a run.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    folder: PathBuf,
}

impl Checkpoints {
    /// The folder under a run's folder, made if necessary. Files that a killed run did not finish are removed.
    pub fn open(run: &Path) -> Result<Self, LearnError> {
        let folder = RunFolder::new(run).checkpoints();
        std::fs::create_dir_all(&folder).map_err(RecordError::file("make", &folder))?;
        sweep(&folder);
        Ok(Checkpoints { folder })
    }

    /// The folder of a run that is only read.
    pub fn of(run: &Path) -> Self {
        Checkpoints { folder: RunFolder::new(run).checkpoints() }
    }

    /// Where the checkpoint of a step lies.
    pub fn path(&self, step: u64) -> PathBuf {
        self.folder.join(format!("step-{step:09}.safetensors"))
    }

    /// Where the best weights, found at a step, lie.
    pub fn best_path(&self, step: u64) -> PathBuf {
        self.folder.join(format!("best-{step:09}.safetensors"))
    }

    /// Steps of the checkpoints there are, ascending.
    pub fn steps(&self) -> Result<Vec<u64>, LearnError> {
        self.list("step-")
    }

    /// The newest checkpoint; none if there is no checkpoint at all. A damaged one is an error that names the one before
    /// it, never skipped in silence.
    pub fn newest(&self, params: usize) -> Result<Option<Checkpoint>, LearnError> {
        let steps = self.steps()?;
        let Some(&last) = steps.last() else { return Ok(None) };
        Checkpoint::load(&self.path(last), params).map(Some).map_err(|error| match error {
            LearnError::Damaged { path, why, .. } => {
                let help = match steps.len().checked_sub(2).map(|i| steps[i]) {
                    Some(step) => format!(": remove it to resume from step {step}"),
                    None => ": no other checkpoint is left, so the run must be started anew".into(),
                };
                LearnError::Damaged { path, why, help }
            }
            other => other,
        })
    }

    /// Removes all but the two newest checkpoints and the best weights that these two refer to.
    pub fn tidy(&self) -> Result<(), LearnError> {
        let steps = self.steps()?;
        let kept = &steps[steps.len().saturating_sub(2)..];
        for &step in &steps[..steps.len() - kept.len()] {
            self.remove(&self.path(step))?;
        }
        let bests = self.list("best-")?;
        for &best in &bests {
            // Each checkpoint refers to the newest best that is not newer than itself.
            let wanted = kept.iter().any(|&step| bests.iter().rfind(|&&b| b <= step) == Some(&best));
            if !wanted {
                self.remove(&self.best_path(best))?;
            }
        }
        Ok(())
    }

    /// Removes the best weights that are newer than the step from which a run continues (0 if it begins anew). The run may find
    /// other ones, and must not take these for its own.
    pub fn forget_after(&self, step: u64) -> Result<(), LearnError> {
        self.list("best-")?.iter().filter(|&&best| best > step).try_for_each(|&best| self.remove(&self.best_path(best)))
    }

    fn remove(&self, path: &Path) -> Result<(), LearnError> {
        Ok(std::fs::remove_file(path).map_err(RecordError::file("remove", path))?)
    }

    /// Steps of the files whose names begin so, ascending.
    fn list(&self, prefix: &str) -> Result<Vec<u64>, LearnError> {
        let step = |name: &String| name.strip_prefix(prefix)?.strip_suffix(".safetensors")?.parse().ok();
        let mut steps: Vec<u64> = self.names()?.iter().filter_map(step).collect();
        steps.sort_unstable();
        Ok(steps)
    }

    fn names(&self) -> Result<Vec<String>, LearnError> {
        let name = |entry: std::io::Result<std::fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        let names = std::fs::read_dir(&self.folder).and_then(|entries| entries.map(name).collect());
        Ok(names.map_err(RecordError::file("read", &self.folder))?)
    }
}

#[cfg(test)]
mod tests {
    use polystep_engine::Limits;
    use polystep_record::BestValidation;

    use super::super::Window;
    use super::*;
    use crate::feed::{Counts, Position};

    fn empty() -> (tempfile::TempDir, Checkpoints) {
        let folder = tempfile::tempdir().unwrap();
        let all = Checkpoints::open(folder.path()).unwrap();
        (folder, all)
    }

    fn checkpoint(step: u64) -> Checkpoint {
        let state = RunState {
            step,
            examples: 32 * step,
            position: Position { block: 2, offset: 77 },
            seed: 9,
            counts: Counts { proofs: 49_152, rejected: 12, skipped: 3 },
            seconds: 0.1 + 0.2,
            best: None,
            validated: 32,
            window: Window::default(),
            limits: Limits { sequences: 32, src_tokens: 4000, tgt_tokens: 3000 },
            batches: Some([16, 32]),
            course: None,
            seen: None,
            focus: None,
            dataset: None,
        };
        let numbers = |k: f32| (0..100).map(|i| k * i as f32).collect();
        Checkpoint {
            state,
            params: numbers(0.1),
            first: numbers(1e-20),
            second: numbers(1e20),
            average: Some(numbers(0.2)),
        }
    }

    #[test]
    fn a_checkpoint_comes_back_bit_for_bit() {
        let (_folder, all) = empty();
        assert!(all.newest(100).unwrap().is_none());
        checkpoint(5).save(&all.path(5)).unwrap();
        checkpoint(7).save(&all.path(7)).unwrap();
        assert_eq!(all.newest(100).unwrap().unwrap(), checkpoint(7));
    }

    /// Whatever single bit flips, and wherever the file ends, loading says so and names the checkpoint before it.
    #[test]
    fn damage_is_always_noticed() {
        let (_folder, all) = empty();
        checkpoint(5).save(&all.path(5)).unwrap();
        checkpoint(7).save(&all.path(7)).unwrap();
        let whole = std::fs::read(all.path(7)).unwrap();
        let refused = |bytes: &[u8]| {
            std::fs::write(all.path(7), bytes).unwrap();
            let error = all.newest(100).unwrap_err().to_string();
            assert!(error.contains("is damaged") && error.ends_with(": remove it to resume from step 5"), "{error}");
        };
        for at in (0..whole.len()).step_by(7) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            refused(&bytes);
            refused(&whole[..at]);
        }
    }

    #[test]
    fn exchanged_tensors_are_noticed() {
        let (_folder, all) = empty();
        checkpoint(5).save(&all.path(5)).unwrap();
        let mut bytes = std::fs::read(all.path(5)).unwrap();
        let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let text = String::from_utf8(bytes[8..header].to_vec()).unwrap();
        let text = text.replace("\"params\"", "?").replace("\"first\"", "\"params\"").replace('?', "\"first\"");
        bytes[8..header].copy_from_slice(text.as_bytes());
        std::fs::write(all.path(5), &bytes).unwrap();
        let error = Checkpoint::load(&all.path(5), 100).unwrap_err().to_string();
        assert!(error.contains("is damaged (the checksum of its tensors does not match)"), "{error}");
    }

    #[test]
    fn a_state_that_no_training_can_reach_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("forged");
        let changes: [fn(&mut Checkpoint); 18] = [
            |c| c.state.step = u64::MAX,
            |c| c.state.step = 6,
            |c| (c.state.step, c.state.examples) = (u64::MAX, u64::MAX),
            // Consistent, but the next step would overflow.
            |c| {
                (c.state.step, c.state.examples) = (u64::MAX, u64::MAX);
                (c.state.position, c.state.counts.proofs) = (Position { block: 1 << 49, offset: 0 }, 1 << 63);
            },
            |c| c.state.counts.rejected = u64::MAX,
            |c| c.state.counts.skipped = 49_152 << 17,
            |c| c.state.validated = 225,
            |c| c.state.seconds = 1e300,
            |c| c.state.window.tokens = u64::MAX,
            |c| c.state.best = Some(BestValidation { step: 8, examples: 32, full_proof: 0.5, stepwise: 0.5 }),
            |c| c.state.best = Some(BestValidation { step: 1, examples: 32, full_proof: 1.5, stepwise: 0.5 }),
            |c| c.state.seconds = -1.0,
            |c| c.state.position.block = u64::MAX,
            |c| c.state.position.block = 3,
            |c| c.params[3] = f32::NAN,
            |c| c.average = Some(vec![f32::NAN; 100]),
            |c| c.first[3] = f32::INFINITY,
            |c| c.second[3] = -1.0,
        ];
        for (i, change) in changes.into_iter().enumerate() {
            let mut forged = checkpoint(7);
            change(&mut forged);
            forged.save(&path).unwrap();
            let error = Checkpoint::load(&path, 100).map(drop).unwrap_err().to_string();
            assert!(error.contains("is damaged ("), "{i}: {error}");
        }
    }

    #[test]
    fn another_model_is_refused() {
        let (_folder, all) = empty();
        checkpoint(5).save(&all.path(5)).unwrap();
        let error = all.newest(101).unwrap_err().to_string();
        assert!(error.ends_with("belongs to another run: its model has 100 numbers where this one has 101"), "{error}");
    }

    #[test]
    fn the_last_two_and_their_bests_stay() {
        let (_folder, all) = empty();
        for step in [10, 20, 30, 40] {
            checkpoint(step).save(&all.path(step)).unwrap();
        }
        for best in [8, 15, 38] {
            std::fs::write(all.best_path(best), b"").unwrap();
        }
        all.tidy().unwrap();
        assert_eq!(all.steps().unwrap(), [30, 40]);
        assert_eq!(all.list("best-").unwrap(), [15, 38]);
    }

    #[test]
    fn weights_of_a_future_that_is_undone_are_removed() {
        let (_folder, all) = empty();
        checkpoint(20).save(&all.path(20)).unwrap();
        for best in [15, 25] {
            std::fs::write(all.best_path(best), b"").unwrap();
        }
        all.forget_after(20).unwrap();
        assert_eq!(all.list("best-").unwrap(), [15]);
        assert_eq!(all.names().unwrap().len(), 2);
    }

    /// The folder may be a link into a folder of the user's. A file whose writer is not known to be gone stays.
    #[test]
    fn what_others_may_have_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, RunFolder::new(folder.path()).checkpoints()).unwrap();
        for name in ["thesis.tmp", ".polystep-dead.tmp"] {
            std::fs::write(elsewhere.join(name), b"half").unwrap();
        }
        assert_eq!(Checkpoints::open(folder.path()).unwrap().names().unwrap(), [".polystep-dead.tmp", "thesis.tmp"]);
    }
}
