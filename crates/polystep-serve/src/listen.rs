//! Connections: accepted, kept from waiting forever, and finished when the server is to stop.
//!
//! A client that sends its request slowly loses the connection after ten seconds. There are never more than 512 connections;
//! the next one waits until another closes. A connection that is kept alive is closed after five minutes, so that clients
//! which never read cannot hold all of them.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::error::ServeError;

/// Connections at once.
const MOST: usize = 512;
/// The longest that a client may take to send a header.
const HEADER: Duration = Duration::from_secs(10);
/// The longest that a connection is kept.
const KEPT: Duration = Duration::from_secs(300);

/// Ctrl-C, SIGTERM or SIGHUP. A second one ends the program at once.
pub fn signal() -> Result<impl Future<Output = ()>, ServeError> {
    #[cfg(unix)]
    let (mut terminate, mut hang_up) = {
        use tokio::signal::unix::{SignalKind, signal};
        let on = |kind| signal(kind).map_err(ServeError::Runtime);
        (on(SignalKind::terminate())?, on(SignalKind::hangup())?)
    };
    let mut next = async move || {
        #[cfg(unix)]
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    };
    Ok(async move {
        next().await;
        tokio::spawn(async move {
            next().await;
            std::process::exit(130);
        });
    })
}

/// Serves until `stop`, then gives what runs the time that a proof may take.
pub async fn serve(listener: TcpListener, router: Router, time_limit: Duration, stop: impl Future<Output = ()>) {
    let (places, watched) = (Arc::new(Semaphore::new(MOST)), GracefulShutdown::new());
    let mut stop = pin!(stop);
    loop {
        let accepted = async {
            let place = places.clone().acquire_owned().await.expect("nobody closes it");
            (listener.accept().await, place)
        };
        let (stream, place) = tokio::select! {
            () = &mut stop => break,
            (accepted, place) = accepted => match accepted {
                Ok((stream, _)) => (stream, place),
                Err(_) => {
                    // Out of file descriptors, or the client is gone already: others may close theirs.
                    sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        // A step is small and should leave at once.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER)
            .max_headers(64)
            .max_buf_size(64 * 1024)
            .serve_connection(TokioIo::new(stream), service);
        let watcher = watched.watcher();
        tokio::spawn(async move {
            let _place = place;
            let connection = pin!(watcher.watch(connection));
            // What the client did wrong is its own affair.
            let _ = timeout(KEPT + time_limit, connection).await;
        });
    }
    drop(listener);
    let _ = timeout(time_limit + Duration::from_secs(1), watched.shutdown()).await;
}
