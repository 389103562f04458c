//! Which process wrote something, also on another host, and whether it is known to be gone.
//!
//! Process numbers say something only where they were given: under one kernel since it started, in one namespace of processes.
//! That is a place. Of a process at another place nobody here can tell whether it lives; a [lease](crate::Lease) tells.

use std::fs;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// A process, told apart from all others on any host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProcessMark {
    /// Where its number was given.
    place: String,
    /// Its number there.
    #[serde(rename = "process")]
    number: u32,
    /// When it started, in ticks of that kernel's clock: numbers are given again.
    started: u64,
}

impl ProcessMark {
    /// This process.
    pub fn own() -> &'static ProcessMark {
        static OWN: OnceLock<ProcessMark> = OnceLock::new();
        OWN.get_or_init(|| {
            let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_else(|_| host());
            let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
            let place = blake3::hash(format!("{boot}{}", space.display()).as_bytes()).to_hex()[..12].to_owned();
            let number = std::process::id();
            ProcessMark { place, number, started: started(number).unwrap_or(0) }
        })
    }

    /// A process of which nothing is known.
    pub(crate) fn unknown() -> ProcessMark {
        ProcessMark { place: "unknown".into(), number: 0, started: 0 }
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Whether it is known to live: it runs here.
    pub fn lives(&self) -> bool {
        self.is_of_here() && started(self.number) == Some(self.started)
    }

    /// Whether it is known to be gone: it ran here, and does not any more.
    pub fn is_gone(&self) -> bool {
        self.is_of_here() && started(self.number) != Some(self.started)
    }

    /// Whether it runs, or ran, where process numbers mean what they mean here.
    fn is_of_here(&self) -> bool {
        let own = ProcessMark::own();
        self.place == own.place && own.started > 0
    }

    /// The mark as a part of a file name: `PLACE-NUMBER-STARTED`.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}-{}", self.place, self.number, self.started)
    }

    /// The mark of such a part.
    pub(crate) fn of_name(name: &str) -> Option<ProcessMark> {
        let mut parts = name.split('-');
        let mark = ProcessMark {
            place: parts.next()?.to_owned(),
            number: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(mark)
    }
}

/// When a process of this place started; none if there is none, or only its exit code is left.
fn started(number: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

/// The name of this machine: under Slurm that of the node.
pub(crate) fn host() -> String {
    let name = std::env::var("SLURMD_NODENAME").ok();
    let name = name.or_else(|| Some(fs::read_to_string("/proc/sys/kernel/hostname").ok()?.trim().to_owned()));
    name.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_else(|| "an unnamed host".to_owned())
}

#[cfg(test)]
impl ProcessMark {
    /// A process of another host, of which nothing is known here.
    pub(crate) fn elsewhere() -> ProcessMark {
        ProcessMark { place: "elsewhere".into(), ..ProcessMark::own().clone() }
    }

    /// A process of this host that has ended.
    pub(crate) fn ended() -> ProcessMark {
        ProcessMark { started: 1, ..ProcessMark::own().clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_gone_when_it_has_ended_even_before_its_parent_noticed() {
        let own = ProcessMark::own();
        assert!(own.lives() && !own.is_gone());
        assert!(ProcessMark::ended().is_gone() && !ProcessMark::ended().lives());
        let other = ProcessMark::elsewhere();
        assert!(!other.lives() && !other.is_gone());
        assert_eq!(ProcessMark::of_name(&own.name()).as_ref(), Some(own));

        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mark = ProcessMark { number: child.id(), started: started(child.id()).unwrap(), ..own.clone() };
        assert!(mark.lives());
        drop(child.stdin.take());
        while mark.lives() {
            std::thread::yield_now();
        }
        assert!(mark.is_gone());
        child.wait().unwrap();
        assert!(mark.is_gone());
    }
}
