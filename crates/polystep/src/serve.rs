//! `polystep serve`: the proof page, for a browser on this computer.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use polystep_serve::{ServeError, ServeSettings, serve};

use crate::args::ThreadArgs;
use crate::failure::{Failure, Result, bad_input};
use crate::output::note;
use crate::{bundled, say};

const EXAMPLES: &str = "\
Examples:
  polystep serve                              the page, on http://127.0.0.1:8017/
  polystep serve --runs runs                  and runs while they train
  polystep serve --host 0.0.0.0 --allow-host lab.example

Ctrl-C, SIGTERM and SIGHUP finish the proofs under way; then the exit code is 0. There is no
password: whoever reaches the address can use the page. docs/page.md describes the JSON API.";

/// Flags of `polystep serve`.
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The port; 0 takes any free one
    #[arg(long, value_name = "N", default_value_t = 8017)]
    port: u16,
    /// The address to listen on; any but a loopback address opens the page to others
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// A further name by which people reach the page; may be given several times
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// The folder of your runs, shown while they train; no file outside of it can be named
    #[arg(long, value_name = "FOLDER")]
    runs: Option<PathBuf>,
    /// The folder with our records, for the paper's tables [default: results beside the bundled models]
    #[arg(long, value_name = "FOLDER")]
    results: Option<PathBuf>,
    /// The longest that one proof may take
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    time_limit: u64,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// Serves the page until a signal comes.
pub fn run(args: Args) -> Result<()> {
    let Args { port, host, allow_host, runs, results, time_limit, threads } = args;
    for (flag, folder) in [("--runs", &runs), ("--results", &results)] {
        if let Some(folder) = folder.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(bad_input(format!("{flag}: there is no folder {}", folder.display())));
        }
    }
    let models = bundled::folder();
    let beside = || models.as_ref()?.parent().map(|place| place.join("results")).filter(|place| place.is_dir());
    let settings = ServeSettings {
        address: SocketAddr::new(host, port),
        hosts: allow_host,
        results: results.or_else(beside),
        models,
        runs,
        threads: threads.count(),
        time_limit: Duration::from_secs(time_limit),
    };
    if settings.models.is_none() {
        note("note: there is no folder models/ with trained models; only models of --runs can prove");
    }
    let mut printed = Ok(());
    serve(&settings, |address| printed = say!("http://{address}/"))?;
    printed
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        match error {
            ServeError::Model(error) => error.into(),
            error => Failure::Runtime(error.into()),
        }
    }
}
