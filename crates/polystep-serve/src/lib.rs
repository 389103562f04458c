//! The proof page: a server on which a Transformer proves polynomials, every step checked as it appears.
//!
//! The page is three files without a framework or build step (`page/`), embedded in the binary. It uses the same JSON API that
//! programs use; `docs/page.md` documents it. A proof is a stream of server-sent events.
//!
//! ```text
//! browser ── guard ── api ── catalog ── decoder (threads of a model)
//!            Host     JSON   models      steps of all open proofs, decoded in one batch
//!            Origin          and runs
//! ```
//!
//! - `guard` refuses what comes from elsewhere, and sets the headers that keep the page safe.
//! - `api` reads requests and writes answers; each part has a file of its own.
//! - `catalog` knows the models, and starts a decoder for one when it is first asked for.
//! - `decoder` takes the next step of every open proof, decodes them together, and sends the events.
//! - `listen` accepts connections, and finishes what runs when the server is to stop.

mod api;
mod body;
mod catalog;
mod decoder;
mod error;
mod gallery;
mod guard;
mod listen;
mod page;
mod run_list;
mod shown;
mod tables;
mod terms;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

pub use error::ServeError;

use catalog::Catalog;
use gallery::Gallery;
use guard::Hosts;
use run_list::RunList;
use tables::Tables;

/// What a server is to do.
#[derive(Clone, Debug)]
pub struct ServeSettings {
    /// Where it listens; port 0 is any free port.
    pub address: SocketAddr,
    /// Names besides `localhost` by which people reach it.
    pub hosts: Vec<String>,
    /// The folder of the bundled models.
    pub models: Option<PathBuf>,
    /// The folder of the user's runs.
    pub runs: Option<PathBuf>,
    /// The folder of committed results: records of runs and ledgers.
    pub results: Option<PathBuf>,
    /// Threads that decode; 0 is one per core.
    pub threads: usize,
    /// The longest that a proof may take.
    pub time_limit: Duration,
}

/// What every request sees.
struct App {
    hosts: Hosts,
    catalog: Catalog,
    runs: RunList,
    tables: Tables,
    gallery: Gallery,
    time_limit: Duration,
}

/// Serves until a signal (Ctrl-C, SIGTERM, SIGHUP) arrives, then finishes what runs. `ready` is called with the address once
/// requests are answered.
pub fn serve(settings: &ServeSettings, ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        // Reading an expression and opening a run are short, but not short enough for the threads of the network.
        .max_blocking_threads(4)
        .enable_all()
        .build()
        .map_err(ServeError::Runtime)?;
    runtime.block_on(async {
        let stop = listen::signal()?;
        serve_until(settings, ready, stop).await
    })
}

/// Serves until `stop` comes, then finishes what runs.
pub async fn serve_until(
    settings: &ServeSettings,
    ready: impl FnOnce(SocketAddr),
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let address = settings.address;
    let listener = TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })?;
    let bound = listener.local_addr().map_err(|source| ServeError::Listen { address, source })?;
    let app = Arc::new(App {
        hosts: Hosts::new(bound, &settings.hosts),
        catalog: Catalog::open(settings.models.clone(), settings.runs.clone(), settings.threads)?,
        runs: RunList::new(settings.runs.clone()),
        tables: Tables::new(settings.results.clone()),
        gallery: Gallery::embedded(),
        time_limit: settings.time_limit,
    });
    // The first proof need not wait for weights.
    app.catalog.warm_up();
    ready(bound);
    listen::serve(listener, api::router(app), settings.time_limit, stop).await;
    Ok(())
}
