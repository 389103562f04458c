//! Leases: which process is at work on something, in a file that every host with the folder can read.
//!
//! File locks do not reach other hosts on many shared file systems, so none are used. A lease is a small file. Its name is given
//! by a hard link, which only one of several processes can make, on NFS too. Its holder counts up a number in it, the heartbeat. A
//! holder is gone if its process ran here and does not any more. On another host it is gone when three of its heartbeats in a row
//! have not come, by the clock of whoever watches: clocks of two hosts are never compared.
//!
//! A lease has a successor's name, made of its token. Whoever takes the lease over makes that name first; so does the holder who
//! gives it back. Of all these only one succeeds, and the others have lost. It then looks whether the lease is still the one that it
//! knew, since the name is free again once somebody else has come and gone. The successor's file is then renamed to the lease's
//! place. If its process dies before that, the successor is itself a lease whose holder is gone: it has a successor's name too.
//!
//! Heartbeats are written into the holder's own file, not to its name. A holder who slept for too long therefore never overwrites
//! the lease of another. It finds out at its next heartbeat, or when it asks ([`Lease::check`]) before it writes something that counts.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::RecordError;
use crate::process::{ProcessMark, host};
use crate::whole::{sweep_of, temporary_beside};

/// Heartbeats that may fail to come.
const MISSED: u32 = 3;
/// How often a process looks that waits for a lease.
const LOOK: Duration = Duration::from_millis(20);
/// How long a process waits that was beaten to a name.
const AGAIN: Duration = Duration::from_millis(1);
/// Digits of the heartbeat's number in the file.
const DIGITS: usize = 12;

/// The time from one heartbeat to the next: 10 seconds, or `POLYSTEP_HEARTBEAT` seconds.
fn heartbeat() -> Duration {
    let asked = std::env::var("POLYSTEP_HEARTBEAT").ok().and_then(|text| text.parse().ok());
    asked.and_then(|s| Duration::try_from_secs_f64(s).ok()).filter(|d| !d.is_zero()).unwrap_or(Duration::from_secs(10))
}

/// Who holds a lease.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LeaseHolder {
    /// The host, for people.
    pub host: String,
    /// The process.
    #[serde(flatten)]
    pub process: ProcessMark,
    /// The Slurm job, as `squeue` writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Since when, in seconds since 1970 by the holder's clock. For people: it is compared with nothing.
    pub since: u64,
    /// Milliseconds from one heartbeat to the next.
    every: u64,
    /// No other lease has the same.
    token: String,
    /// Heartbeats so far.
    #[serde(skip_serializing, default)]
    beat: u64,
}

impl LeaseHolder {
    /// This process as a holder from now on.
    pub fn own() -> LeaseHolder {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let variable = |name: &str| std::env::var(name).ok();
        let array = variable("SLURM_ARRAY_JOB_ID").zip(variable("SLURM_ARRAY_TASK_ID"));
        let process = ProcessMark::own().clone();
        LeaseHolder {
            host: host(),
            job: array.map(|(job, task)| format!("{job}_{task}")).or_else(|| variable("SLURM_JOB_ID")),
            since: now.as_secs(),
            every: heartbeat().as_millis() as u64,
            token: format!("{}-{}-{}", process.name(), now.as_nanos(), COUNT.fetch_add(1, Ordering::Relaxed)),
            beat: 0,
            process,
        }
    }

    /// Who holds the lease of this name now; none if it is free, or if its holder is known to be gone.
    pub fn read(path: &Path) -> Option<LeaseHolder> {
        newest(path).ok().flatten().map(|(holder, _)| holder).filter(|holder| !holder.process.is_gone())
    }

    /// The file's text, and where in it the number of the heartbeat stands.
    fn text(&self) -> (String, u64) {
        let head = serde_json::to_string(self).unwrap_or_default();
        let head = format!("{},\"beat\":", head.trim_end_matches('}'));
        (format!("{head}{:>DIGITS$}}}\n", self.beat), head.len() as u64)
    }

    /// What a file says. One that cannot be understood has a holder of whom nothing is known, and who sends no heartbeats.
    fn parse(text: &[u8]) -> LeaseHolder {
        let unknown = || LeaseHolder {
            host: "an unknown host".into(),
            token: "unknown".into(),
            process: ProcessMark::unknown(),
            ..LeaseHolder::own()
        };
        serde_json::from_slice(text).unwrap_or_else(|_| unknown())
    }

    /// `process 4711 on node1, job 12_3, since 2026-03-01 12:00 UTC`.
    pub fn described(&self) -> String {
        let job = self.job.as_ref().map_or(String::new(), |job| format!(", job {job}"));
        format!("process {} on {}{job}, since {}", self.process.number(), self.host, utc(self.since))
    }
}

/// `2026-03-01 12:00 UTC`: seconds since 1970 for people.
pub fn utc(seconds: u64) -> String {
    // Days since 0000-03-01, in eras of 400 years: leap days come last, so that months have fixed places.
    let (days, seconds) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = 400 * era + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", seconds / 3600, seconds / 60 % 60)
}

/// Time that a lease has cost so far.
#[derive(Clone, Copy, Default, Debug)]
pub struct LeaseCost {
    /// Taking it.
    pub claim: Duration,
    /// All heartbeats together.
    pub heartbeats: Duration,
}

/// A lease that this process holds. Dropped, it is given back.
#[derive(Debug)]
pub struct Lease {
    own: Arc<Own>,
    /// Dropping it ends the heartbeats.
    stop: Option<mpsc::Sender<()>>,
    heart: Option<JoinHandle<()>>,
    claim: Duration,
    taken_over: bool,
}

/// What the heart and the lease share.
#[derive(Debug)]
struct Own {
    path: PathBuf,
    holder: LeaseHolder,
    file: File,
    /// Microseconds of heartbeats.
    spent: AtomicU64,
}

/// What became of an attempt to take a lease.
#[derive(Debug)]
pub enum Claim {
    /// It is ours.
    Ours(Lease),
    /// Another process holds it, and is known to live.
    Theirs(LeaseHolder),
    /// Another process holds it. Whether that lives is not known yet.
    Unclear(LeaseHolder),
}

/// Takes leases, and remembers what it has seen of those that others hold.
#[derive(Debug, Default)]
pub struct LeaseWatch {
    seen: BTreeMap<PathBuf, Sighting>,
}

/// A lease of another process, as this one has seen it.
#[derive(Debug)]
struct Sighting {
    token: String,
    beat: u64,
    /// When this beat was first seen, by our own clock.
    first: Instant,
    /// Whether an earlier beat of the same holder was seen.
    moved: bool,
}

impl LeaseWatch {
    /// Tries to take the lease of a name. Never waits. Whoever waits calls it again and again: with time an unclear holder turns
    /// out to live or to be gone.
    pub fn claim(&mut self, path: &Path) -> Result<Claim, RecordError> {
        let began = Instant::now();
        let cannot = |e| RecordError::file("write", path)(e);
        let mut own: Option<(LeaseHolder, tempfile::NamedTempFile)> = None;
        loop {
            let current = newest(path).map_err(RecordError::file("read", path))?;
            if let Some((holder, _)) = &current {
                match self.judge(path, holder) {
                    Some(true) => return Ok(Claim::Theirs(holder.clone())),
                    None => return Ok(Claim::Unclear(holder.clone())),
                    Some(false) => {}
                }
            }
            let (holder, file) = match own.take() {
                Some(made) => made,
                None => written(path).map_err(cannot)?,
            };
            let name = current.as_ref().map_or_else(|| path.to_owned(), |(old, _)| successor(path, &old.token));
            if !linked(file.path(), &name).map_err(cannot)? {
                own = Some((holder, file));
                thread::sleep(AGAIN);
                continue;
            }
            if let Some((old, chain)) = &current {
                // The lease may have been given back, or taken over, just before we made the name.
                if newest(path).ok().flatten().is_none_or(|(end, _)| end.token != holder.token) {
                    let _ = fs::remove_file(&name);
                    own = Some((holder, file));
                    continue;
                }
                fs::rename(&name, path).map_err(cannot)?;
                chain.iter().filter(|other| *other != path).for_each(|other| drop(fs::remove_file(other)));
                sweep_of(path, &old.process);
            }
            self.seen.remove(path);
            let file = file.as_file().try_clone().map_err(cannot)?;
            let own = Arc::new(Own { path: path.to_owned(), holder, file, spent: AtomicU64::new(0) });
            let lease = Lease::hold(own, began.elapsed(), current.is_some());
            return lease.map(Claim::Ours).map_err(cannot);
        }
    }

    /// Which of some leases nobody holds. To find out may take three heartbeats.
    pub fn free(&mut self, paths: &[PathBuf]) -> Result<Vec<bool>, RecordError> {
        loop {
            let claims: Vec<Claim> = paths.iter().map(|path| self.claim(path)).collect::<Result<_, _>>()?;
            if !claims.iter().any(|claim| matches!(claim, Claim::Unclear(_))) {
                return Ok(claims.iter().map(|claim| matches!(claim, Claim::Ours(_))).collect());
            }
            drop(claims);
            thread::sleep(LOOK);
        }
    }

    /// Removes the leases of holders who are gone. To find out may take three heartbeats.
    pub fn clear(paths: impl IntoIterator<Item = PathBuf>) -> Result<(), RecordError> {
        let left: Vec<PathBuf> = paths.into_iter().filter(|path| path.exists()).collect();
        LeaseWatch::default().free(&left).map(drop)
    }

    /// Whether a holder lives, as far as it is known.
    fn judge(&mut self, path: &Path, holder: &LeaseHolder) -> Option<bool> {
        if holder.process.is_gone() || holder.process.lives() {
            return Some(holder.process.lives());
        }
        let (token, beat) = (holder.token.clone(), holder.beat);
        let now = Sighting { token, beat, first: Instant::now(), moved: false };
        let Some(seen) = self.seen.get_mut(path).filter(|seen| seen.token == now.token) else {
            self.seen.insert(path.to_owned(), now);
            return None;
        };
        if seen.beat != now.beat {
            *seen = Sighting { moved: true, ..now };
        }
        let silent = seen.first.elapsed() >= MISSED * Duration::from_millis(holder.every);
        if silent { Some(false) } else { seen.moved.then_some(true) }
    }
}

impl Lease {
    /// Takes a lease. An error if another process holds it, which may take three heartbeats to find out.
    pub fn take(path: &Path) -> Result<Lease, RecordError> {
        let mut watch = LeaseWatch::default();
        loop {
            match watch.claim(path)? {
                Claim::Ours(lease) => return Ok(lease),
                Claim::Theirs(holder) => {
                    let folder = path.parent().unwrap_or(path).to_owned();
                    return Err(RecordError::InUse { folder, holder: holder.described() });
                }
                Claim::Unclear(_) => thread::sleep(LOOK),
            }
        }
    }

    /// Waits until no other process holds the lease, then takes it.
    pub fn wait(path: &Path) -> Result<Lease, RecordError> {
        let mut watch = LeaseWatch::default();
        loop {
            match watch.claim(path)? {
                Claim::Ours(lease) => return Ok(lease),
                _ => thread::sleep(LOOK),
            }
        }
    }

    /// Starts the heartbeats of a lease that was just taken.
    fn hold(own: Arc<Own>, claim: Duration, taken_over: bool) -> io::Result<Lease> {
        let (stop, stopped) = mpsc::channel::<()>();
        let its = Arc::clone(&own);
        let heart = thread::Builder::new().spawn(move || {
            let every = Duration::from_millis(its.holder.every);
            let mut beat = 0;
            while stopped.recv_timeout(every) == Err(mpsc::RecvTimeoutError::Timeout) && its.is_held() {
                beat += 1;
                its.beat(beat);
            }
        })?;
        Ok(Lease { own, stop: Some(stop), heart: Some(heart), claim, taken_over })
    }

    /// An error if another process has taken the lease over.
    pub fn check(&self) -> Result<(), RecordError> {
        if self.own.is_held() { Ok(()) } else { Err(RecordError::LeaseLost { path: self.own.path.clone() }) }
    }

    /// Whether an earlier holder was gone, and did not give it back.
    pub fn is_taken_over(&self) -> bool {
        self.taken_over
    }

    /// Who holds it: this process.
    pub fn holder(&self) -> &LeaseHolder {
        &self.own.holder
    }

    /// Time that it has cost so far.
    pub fn cost(&self) -> LeaseCost {
        LeaseCost { claim: self.claim, heartbeats: Duration::from_micros(self.own.spent.load(Ordering::Relaxed)) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(heart) = self.heart.take() {
            let _ = heart.join();
        }
        // Whoever makes the successor's name decides what comes after us. It is free, too, once another has taken our place.
        let name = successor(&self.own.path, &self.own.holder.token);
        if OpenOptions::new().write(true).create_new(true).open(&name).is_ok() {
            if fs::metadata(&self.own.path).is_ok_and(|there| self.own.is_file(&there)) {
                let _ = fs::remove_file(&self.own.path);
            }
            let _ = fs::remove_file(name);
        }
    }
}

impl Own {
    /// Whether the lease is still ours.
    fn is_held(&self) -> bool {
        // A file that is opened is asked for at the server, not in a cache.
        match File::open(&self.path).and_then(|file| file.metadata()) {
            Ok(there) => self.is_file(&there) && !successor(&self.path, &self.holder.token).exists(),
            // A file system that does not answer may do so later.
            Err(e) => e.kind() != ErrorKind::NotFound,
        }
    }

    /// Whether a file is the one that we write heartbeats to.
    fn is_file(&self, there: &fs::Metadata) -> bool {
        self.file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino()))
    }

    /// Writes a heartbeat. If that fails, the next one may succeed.
    fn beat(&self, beat: u64) {
        let began = Instant::now();
        let (_, place) = self.holder.text();
        let _ =
            self.file.write_all_at(format!("{beat:>DIGITS$}").as_bytes(), place).and_then(|()| self.file.sync_data());
        self.spent.fetch_add(began.elapsed().as_micros() as u64, Ordering::Relaxed);
    }
}

/// The name that decides who comes after a holder.
fn successor(path: &Path, token: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(token);
    name.into()
}

/// Who holds a lease in the end, and the files from the lease's own to the last successor's; none if it is free.
fn newest(path: &Path) -> io::Result<Option<(LeaseHolder, Vec<PathBuf>)>> {
    let mut found: Option<(LeaseHolder, Vec<PathBuf>)> = None;
    let mut next = path.to_owned();
    loop {
        let text = match fs::read(&next) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(found),
            text => text?,
        };
        let holder = LeaseHolder::parse(&text);
        let mut chain = found.map_or(Vec::new(), |(_, chain)| chain);
        // A file that cannot be understood names itself as its successor.
        let again = chain.contains(&next);
        chain.push(std::mem::replace(&mut next, successor(path, &holder.token)));
        found = Some((holder, chain));
        if again {
            return Ok(found);
        }
    }
}

/// A file with a lease of our own, not yet under its name.
fn written(path: &Path) -> io::Result<(LeaseHolder, tempfile::NamedTempFile)> {
    let holder = LeaseHolder::own();
    let file = temporary_beside(path)?;
    file.as_file().write_all_at(holder.text().0.as_bytes(), 0)?;
    file.as_file().sync_data()?;
    Ok((holder, file))
}

/// Gives a file a second name; false if the name is taken. On NFS an answer may be lost, so an error is checked.
fn linked(file: &Path, name: &Path) -> io::Result<bool> {
    match fs::hard_link(file, name) {
        Ok(()) => Ok(true),
        Err(_) if fs::metadata(file)?.nlink() == 2 => Ok(true),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests;
