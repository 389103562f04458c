use super::*;
use std::sync::Barrier;

/// A folder and the name of a lease in it.
fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lease.json");
    (folder, path)
}

/// Writes the lease of another process, with a heartbeat of 20 ms.
fn leave(path: &Path, process: ProcessMark, beat: u64) -> LeaseHolder {
    let holder = LeaseHolder { process, every: 20, token: "theirs".into(), beat, ..LeaseHolder::own() };
    fs::write(path, holder.text().0).unwrap();
    holder
}

fn names(folder: &tempfile::TempDir) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn ours(claim: Claim) -> Lease {
    match claim {
        Claim::Ours(lease) => lease,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_process_holds_it_and_nothing_is_left_behind() {
    let (folder, path) = place();
    let held = Lease::take(&path).unwrap();
    held.check().unwrap();
    let error = Lease::take(&path).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{} is in use: process {}", folder.path().display(), std::process::id())));
    assert_eq!(LeaseHolder::read(&path).unwrap().process, *ProcessMark::own());
    assert_eq!(names(&folder), ["lease.json"]);
    drop(held);
    assert!(names(&folder).is_empty());
    Lease::take(&path).unwrap();
}

#[test]
fn a_process_of_this_host_that_ended_is_replaced_at_once() {
    let (folder, path) = place();
    leave(&path, ProcessMark::ended(), 5);
    assert!(LeaseHolder::read(&path).is_none());
    let lease = ours(LeaseWatch::default().claim(&path).unwrap());
    lease.check().unwrap();
    assert_eq!(names(&folder), ["lease.json"]);
}

/// Of another host only its heartbeats are known. The watcher's own clock decides, and one heartbeat in time is enough.
#[test]
fn another_hosts_lease_is_taken_over_after_three_silent_heartbeats() {
    let (_folder, path) = place();
    let mut watch = LeaseWatch::default();
    leave(&path, ProcessMark::elsewhere(), 0);
    let began = Instant::now();
    let mut beat = 0;
    while began.elapsed() < Duration::from_millis(200) {
        let claim = watch.claim(&path).unwrap();
        assert!(if beat < 2 {
            matches!(claim, Claim::Unclear(_) | Claim::Theirs(_))
        } else {
            matches!(claim, Claim::Theirs(_))
        });
        beat += 1;
        leave(&path, ProcessMark::elsewhere(), beat);
        thread::sleep(Duration::from_millis(5));
    }
    let silent = Instant::now();
    let lease = loop {
        match watch.claim(&path).unwrap() {
            Claim::Ours(lease) => break lease,
            _ => thread::sleep(Duration::from_millis(1)),
        }
    };
    assert!(silent.elapsed() >= Duration::from_millis(60));
    lease.check().unwrap();
}

/// The holder slept, another process took over: the holder notices, and what it does then does not touch the other's lease.
#[test]
fn who_lost_a_lease_finds_out_and_takes_nothing_back() {
    let (_folder, path) = place();
    let slept = Lease::take(&path).unwrap();
    let token = slept.own.holder.token.clone();
    let other = LeaseHolder { process: ProcessMark::elsewhere(), token: "other".into(), ..LeaseHolder::own() };
    fs::write(successor(&path, &token), other.text().0).unwrap();
    assert!(slept.check().unwrap_err().to_string().contains("another process has taken over"));
    fs::rename(successor(&path, &token), &path).unwrap();
    assert!(slept.check().is_err());
    slept.own.beat(7);
    drop(slept);
    assert_eq!(LeaseHolder::read(&path).unwrap(), other);
}

/// A process died between the two steps of a take-over, twice; and one between the two steps of giving back.
#[test]
fn a_take_over_that_was_cut_off_is_itself_taken_over() {
    let (folder, path) = place();
    leave(&path, ProcessMark::ended(), 3);
    let died = LeaseHolder { process: ProcessMark::ended(), token: "died".into(), ..LeaseHolder::own() };
    fs::write(successor(&path, "theirs"), died.text().0).unwrap();
    drop(ours(LeaseWatch::default().claim(&path).unwrap()));
    assert!(names(&folder).is_empty(), "{:?}", names(&folder));

    leave(&path, ProcessMark::ended(), 3);
    fs::write(successor(&path, "theirs"), "").unwrap();
    let mut watch = LeaseWatch::default();
    assert!(matches!(watch.claim(&path).unwrap(), Claim::Unclear(_)));
    watch.seen.values_mut().for_each(|seen| seen.first -= Duration::from_secs(60));
    drop(ours(watch.claim(&path).unwrap()));
    assert!(names(&folder).is_empty(), "{:?}", names(&folder));
}

/// Many take it in turn; a counter that is read and written without any other protection loses nothing.
#[test]
fn takers_exclude_each_other() {
    let (folder, path) = place();
    leave(&path, ProcessMark::ended(), 0);
    let counter = folder.path().join("counter");
    fs::write(&counter, "0").unwrap();
    let start = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                start.wait();
                for _ in 0..20 {
                    let _lease = Lease::wait(&path).unwrap();
                    let n: u64 = fs::read_to_string(&counter).unwrap().parse().unwrap();
                    fs::write(&counter, (n + 1).to_string()).unwrap();
                }
            });
        }
    });
    assert_eq!(fs::read_to_string(&counter).unwrap(), "160");
    assert_eq!(names(&folder), ["counter"]);
}

#[test]
fn a_heartbeat_changes_the_number_and_nothing_else() {
    let (_folder, path) = place();
    let lease = Lease::take(&path).unwrap();
    let before = fs::read_to_string(&path).unwrap();
    lease.own.beat(12_345);
    let after = fs::read_to_string(&path).unwrap();
    assert_eq!(after.len(), before.len());
    assert_eq!(
        LeaseHolder::parse(after.as_bytes()),
        LeaseHolder { beat: 12_345, ..LeaseHolder::parse(before.as_bytes()) }
    );
}

#[test]
fn seconds_are_written_as_a_date() {
    assert_eq!(utc(0), "1970-01-01 00:00 UTC");
    assert_eq!(utc(951_782_399), "2000-02-28 23:59 UTC");
    assert_eq!(utc(951_868_800), "2000-03-01 00:00 UTC");
    assert_eq!(utc(1_798_761_599), "2026-12-31 23:59 UTC");
}
