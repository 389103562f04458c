//! NVIDIA's Multi-Process Service (MPS): with it, the kernels of several processes run on a GPU at the same time. Without it they take
//! turns, and several small trainings on one GPU are slower together than one after the other.
//!
//! A service that already runs is used and left alone. Otherwise one is started for this command, in a folder of its own, and ended
//! with it. Children find the service by two variables of their environment.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use polystep_record::WholeFolder;

use crate::failure::{Result, bad_input};
use crate::output::note;

/// The program that starts and ends the service.
const CONTROL: &str = "nvidia-cuda-mps-control";
/// Where processes look for the service.
const PIPES: &str = "CUDA_MPS_PIPE_DIRECTORY";
/// Where the service writes its logs.
const LOGS: &str = "CUDA_MPS_LOG_DIRECTORY";
/// Where the service is unless its variable says otherwise.
const USUAL: &str = "/tmp/nvidia-mps";

/// The service, for as long as this lives.
pub struct Mps {
    /// The folder of a service that was started here.
    started: Option<WholeFolder>,
}

impl Mps {
    /// Uses the service that runs, or starts one.
    pub fn start() -> Result<Mps> {
        let known = std::env::var_os(PIPES).map_or_else(|| PathBuf::from(USUAL), PathBuf::from);
        if known.join("control").exists() {
            note(format_args!("MPS: the service in {} is used", known.display()));
            return Ok(Mps { started: None });
        }
        let folder = WholeFolder::create(&std::env::temp_dir().join("polystep-mps"))?;
        let ended =
            control(folder.place()).arg("-d").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        match ended {
            Ok(status) if status.success() => {
                note(format_args!("MPS: a service was started in {}", folder.place().display()));
                Ok(Mps { started: Some(folder) })
            }
            Ok(status) => Err(anyhow::anyhow!("--mps: {CONTROL} -d ended with {status}; leave --mps out").into()),
            Err(error) => {
                Err(bad_input(format!("--mps needs {CONTROL}, a part of NVIDIA's driver: {error}; leave --mps out")))
            }
        }
    }

    /// What children must have in their environment.
    pub fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        self.started
            .iter()
            .flat_map(|folder| [(PIPES, folder.place().to_owned()), (LOGS, folder.place().to_owned())])
            .collect()
    }
}

fn control(folder: &Path) -> Command {
    let mut command = Command::new(CONTROL);
    command.env(PIPES, folder).env(LOGS, folder);
    command
}

impl Drop for Mps {
    fn drop(&mut self) {
        let Some(folder) = &self.started else { return };
        let quit = control(folder.place()).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        // A service that does not end is no reason to fail: what was measured is written.
        if let Ok(mut quit) = quit {
            let _ = quit.stdin.take().map(|mut stdin| stdin.write_all(b"quit\n"));
            let _ = quit.wait();
        }
    }
}
