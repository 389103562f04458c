//! `--slurm`: a command as an array of tasks under Slurm. This module writes the script, shows it or submits it, and leaves.
//!
//! The script is for people to read and to change. What is not in `[slurm]` or a flag is not in the script either; then the
//! cluster's own default counts. A task is the same command without `--slurm`. It takes the next run that nobody has claimed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use clap::Args;
use polystep_record::{LeaseHolder, LeaseWatch, write_whole};
use serde::Deserialize;

use crate::failure::{Result, bad_toml};
use crate::run_config::read;
use crate::table::counted;
use crate::{launch, say};

/// `[slurm]`: what a task asks the cluster for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SlurmTable {
    /// The partition.
    partition: Option<String>,
    /// The account that pays.
    account: Option<String>,
    /// How long a task may run, as Slurm writes it: `4:00:00`.
    time: Option<String>,
    /// Memory of a task: `32G`.
    memory: Option<String>,
    /// GPUs of a task.
    gpus_per_task: Option<u32>,
    /// CPU cores of a task.
    cpus_per_task: Option<u32>,
    /// Tasks, if there is work for so many.
    tasks: Option<usize>,
    /// Seconds before the time limit at which a task saves and requeues itself.
    warn: Option<u32>,
    /// Any other options of sbatch, such as `--constraint=h200`.
    sbatch: Vec<String>,
    /// Lines of shell before the task, such as `module load cuda`.
    setup: Vec<String>,
}

/// Seconds of warning, if nobody says otherwise: the script shows them.
const WARN: u32 = 120;

/// The flags. Each stands above the key of the same name in `[slurm]`.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Under Slurm")]
pub struct SlurmArgs {
    /// Submit this command as an array of Slurm tasks, and exit; with --dry-run, print the script. FILE has a [slurm] table
    #[arg(long, value_name = "FILE.toml", num_args = 0..=1, require_equals = true)]
    slurm: Option<Option<PathBuf>>,
    /// The partition
    #[arg(long, value_name = "NAME", requires = "slurm")]
    partition: Option<String>,
    /// The account that pays
    #[arg(long, value_name = "NAME", requires = "slurm")]
    account: Option<String>,
    /// How long a task may run, as in 4:00:00
    #[arg(long, value_name = "TIME", requires = "slurm")]
    time: Option<String>,
    /// Memory of a task, as in 32G
    #[arg(long, value_name = "SIZE", requires = "slurm")]
    memory: Option<String>,
    /// GPUs of a task
    #[arg(long, value_name = "N", requires = "slurm")]
    gpus_per_task: Option<u32>,
    /// CPU cores of a task
    #[arg(long, value_name = "N", requires = "slurm")]
    cpus_per_task: Option<u32>,
    /// At most N tasks [default: as many as there is work for]
    #[arg(long, value_name = "N", requires = "slurm", value_parser = clap::value_parser!(u16).range(1..))]
    tasks: Option<u16>,
    /// Seconds before the time limit at which a task saves and requeues itself [default: 120]
    #[arg(long, value_name = "S", requires = "slurm")]
    warn: Option<u32>,
    /// Any other option of sbatch, as in --sbatch=--constraint=h200; may be given several times
    #[arg(long, value_name = "OPTION", requires = "slurm", allow_hyphen_values = true)]
    sbatch: Vec<String>,
    /// A line of shell before the task, as in 'module load cuda'; may be given several times
    #[arg(long, value_name = "LINE", requires = "slurm")]
    setup: Vec<String>,
    /// This is a task of an array: leave the runs that have failed to whoever gives the command again
    #[arg(long, hide = true, conflicts_with = "slurm")]
    pub task: bool,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    slurm: SlurmTable,
}

impl SlurmTable {
    /// The `[slurm]` of a TOML file; empty if it has none.
    pub fn of_toml(name: &str, text: &str) -> Result<SlurmTable> {
        let file: File = toml::from_str(text).map_err(|e| bad_toml(name, text, e.span(), e.message()))?;
        Ok(file.slurm)
    }
}

impl SlurmArgs {
    /// Whether the command is to be submitted.
    pub fn asked(&self) -> bool {
        self.slurm.is_some()
    }

    /// What a task asks for: the table of the command's own file, then that of `--slurm=FILE`, then the flags.
    fn table(&self, own: SlurmTable) -> Result<SlurmTable> {
        let file = match &self.slurm {
            Some(Some(path)) => SlurmTable::of_toml(&path.display().to_string(), &read(path)?)?,
            _ => SlurmTable::default(),
        };
        let lists = |flags: &[String], file: Vec<String>, own: Vec<String>| {
            [flags.to_vec(), file, own].into_iter().find(|list| !list.is_empty()).unwrap_or_default()
        };
        let tasks = self.tasks.map(usize::from);
        Ok(SlurmTable {
            partition: self.partition.clone().or(file.partition).or(own.partition),
            account: self.account.clone().or(file.account).or(own.account),
            time: self.time.clone().or(file.time).or(own.time),
            memory: self.memory.clone().or(file.memory).or(own.memory),
            gpus_per_task: self.gpus_per_task.or(file.gpus_per_task).or(own.gpus_per_task),
            cpus_per_task: self.cpus_per_task.or(file.cpus_per_task).or(own.cpus_per_task),
            tasks: tasks.or(file.tasks).or(own.tasks),
            warn: self.warn.or(file.warn).or(own.warn),
            sbatch: lists(&self.sbatch, file.sbatch, own.sbatch),
            setup: lists(&self.setup, file.setup, own.setup),
        })
    }

    /// Submits the command, or prints the script.
    pub fn submit(&self, own: SlurmTable, array: &TaskArray<'_>, dry_run: bool) -> Result<()> {
        let table = self.table(own)?;
        let script = array.script(&table)?;
        if dry_run {
            return say!("{}", script.trim_end());
        }
        if array.left == 0 {
            return say!("nothing is left to be made, so nothing was submitted");
        }
        let folder = array.folder();
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let path = folder.join(format!("{}.sbatch", array.name));
        write_whole(&path, &script)?;
        let output = Command::new("sbatch").arg("--parsable").arg(&path).output();
        let output = output.context("cannot run sbatch: is this a machine of a Slurm cluster?")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(anyhow::anyhow!("sbatch refused {}: {}", path.display(), said.trim()).into());
        }
        let job = String::from_utf8_lossy(&output.stdout).trim().split(';').next().unwrap_or_default().to_owned();
        let work = counted(array.left, array.unit);
        say!("{work} left; submitted as job {job}, an array of {}", counted(array.tasks(&table), "task"))?;
        say!("script  {}", path.display())?;
        say!("logs    {}/{job}_*.log", folder.display())?;
        say!("watch   squeue --jobs {job}; {}", array.watch)?;
        say!("stop    scancel {job}; what was done stays, and the same command submits what is left")
    }
}

/// What is to be done by tasks.
pub struct TaskArray<'a> {
    /// The subcommand.
    pub name: &'static str,
    /// What a piece of work is called.
    pub unit: &'static str,
    /// How many pieces nobody is at.
    pub left: usize,
    /// How many a task does at a time on one GPU, or on the CPU.
    pub jobs: usize,
    /// The folder that all hosts share; scripts and logs go to `slurm/` in it.
    pub out: &'a Path,
    /// The flags of a task.
    pub args: Vec<String>,
    /// The command that shows how far it is.
    pub watch: String,
}

impl TaskArray<'_> {
    /// Where script and logs go.
    fn folder(&self) -> PathBuf {
        self.out.join("slurm")
    }

    /// As many tasks as there is work for.
    fn tasks(&self, table: &SlurmTable) -> usize {
        let at_a_time = self.jobs * table.gpus_per_task.unwrap_or(1).max(1) as usize;
        self.left.div_ceil(at_a_time).min(table.tasks.unwrap_or(usize::MAX)).max(1)
    }

    /// The script.
    fn script(&self, table: &SlurmTable) -> Result<String> {
        let here = std::env::current_dir().context("cannot find the current folder")?;
        let mut command = launch::another()?;
        command.arg(self.name).args(&self.args).arg("--task");
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let command: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
        let mut options = vec![
            format!("--job-name=polystep-{}", self.name),
            format!("--array=1-{}", self.tasks(table)),
            "--ntasks=1".to_owned(),
            format!("--chdir={}", here.display()),
            format!("--output={}/%A_%a.log", self.folder().display()),
        ];
        let number = |n: Option<u32>| n.map(|n| n.to_string());
        for (name, value) in [
            ("partition", table.partition.clone()),
            ("account", table.account.clone()),
            ("time", table.time.clone()),
            ("mem", table.memory.clone()),
            ("gpus-per-task", number(table.gpus_per_task)),
            ("cpus-per-task", number(table.cpus_per_task)),
        ] {
            options.extend(value.map(|value| format!("--{name}={value}")));
        }
        options.extend(table.sbatch.iter().cloned());
        let options: String = options.iter().map(|option| format!("#SBATCH {option}\n")).collect();
        let mut setup = String::new();
        if !table.setup.is_empty() {
            let _ = writeln!(setup, "\n# From [slurm] setup.\n{}", table.setup.join("\n"));
        }
        Ok(format!(
            r#"#!/bin/bash
# polystep {name} as an array of Slurm tasks, written by polystep {version}. Change what you like, and submit it with sbatch.
# Each task takes the next {unit} that nobody has claimed, until none is left or its time ends.
{options}
# {warn} seconds before the time limit this script gets SIGTERM, and also when it is preempted. The task then saves a
# checkpoint, and the script requeues it. A task that was requeued adds to its log and goes on where it was.
#SBATCH --signal=B:TERM@{warn}
#SBATCH --requeue
#SBATCH --open-mode=append
{setup}
{command} &
task=$!

# The signal comes to this shell alone, so it is passed on. It ends `wait`, so there is a second one for the task's exit code.
stopped=
trap 'stopped=yes; again=yes; kill -TERM "$task" 2> /dev/null' TERM
again=yes
while [ -n "$again" ]; do
  again=
  wait "$task"
  now=$?
  [ "$now" = 127 ] || code=$now
done

# 130: interrupted, and everything is saved. A job that is still running was not cancelled, so it is to go on.
job="${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}"
if [ "$code" = 130 ] && [ -n "$stopped" ] && [ "$(squeue -h -j "$job" -o %T)" = RUNNING ]; then
  echo "saved; requeued"
  scontrol requeue "$job" && exit 0
fi
# 0: nothing is left that nobody is at. 1: a {unit} failed; its name and its log stand above.
exit "$code"
"#,
            name = self.name,
            unit = self.unit,
            version = env!("CARGO_PKG_VERSION"),
            warn = table.warn.unwrap_or(WARN),
            command = command.join(" "),
        ))
    }
}

/// The pieces of work whose lease nobody holds. A dry run believes what the leases say; otherwise those who are silent are given the
/// time of three heartbeats.
pub fn unclaimed<T>(work: Vec<T>, lease: impl Fn(&T) -> PathBuf, dry_run: bool) -> Result<Vec<T>> {
    let leases: Vec<PathBuf> = work.iter().map(lease).collect();
    let held: Vec<PathBuf> = leases.iter().filter(|path| LeaseHolder::read(path).is_some()).cloned().collect();
    let free = if dry_run { vec![false; held.len()] } else { LeaseWatch::default().free(&held)? };
    let still: Vec<&PathBuf> = held.iter().zip(free).filter(|(_, free)| !free).map(|(path, _)| path).collect();
    Ok(work.into_iter().zip(&leases).filter(|(_, path)| !still.contains(path)).map(|(work, _)| work).collect())
}

/// A word as the shell reads it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,+-@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(left: usize, jobs: usize) -> TaskArray<'static> {
        let args = vec!["a file.toml".to_owned(), "--out".into(), "it's".into()];
        TaskArray { name: "sweep", unit: "trial", left, jobs, out: Path::new("runs/x"), args, watch: String::new() }
    }

    #[test]
    fn there_are_as_many_tasks_as_there_is_work() {
        let table = |gpus, tasks| SlurmTable { gpus_per_task: gpus, tasks, ..SlurmTable::default() };
        let tasks = |left, jobs, gpus, most| array(left, jobs).tasks(&table(gpus, most));
        assert_eq!(tasks(12, 1, None, None), 12);
        assert_eq!(tasks(12, 1, Some(8), None), 2);
        assert_eq!(tasks(12, 5, Some(1), None), 3);
        assert_eq!(tasks(12, 1, None, Some(4)), 4);
        assert_eq!(tasks(2, 1, None, Some(4)), 2);
    }

    /// What nobody asked for is not in the script; what was asked for is, and words stay words.
    #[test]
    fn the_script_holds_what_was_asked_for() {
        crate::launch::remember(crate::launch::Launch::binary());
        let script = |table: &SlurmTable| array(3, 1).script(table).expect("a script");
        let plain = script(&SlurmTable::default());
        for option in ["partition", "account", "time=", "mem", "gpus", "cpus"] {
            assert!(!plain.contains(&format!("#SBATCH --{option}")), "{option}: {plain}");
        }
        assert!(plain.contains("sweep 'a file.toml' --out 'it'\\''s' --task &\n"), "{plain}");
        let toml = "[slurm]\npartition = \"gpu\"\ntime = \"4:00:00\"\nmemory = \"32G\"\ngpus_per_task = 2\nwarn = 60\n\
                    sbatch = [\"--constraint=h200\"]\nsetup = [\"module load cuda\"]\n";
        let full = script(&SlurmTable::of_toml("a.toml", toml).unwrap_or_else(|e| panic!("{e:?}")));
        for line in
            ["partition=gpu", "time=4:00:00", "mem=32G", "gpus-per-task=2", "constraint=h200", "signal=B:TERM@60"]
        {
            assert!(full.contains(&format!("\n#SBATCH --{line}\n")), "{line}: {full}");
        }
        assert!(full.contains("\nmodule load cuda\n") && full.contains("\n#SBATCH --array=1-2\n"), "{full}");
        let wrong = SlurmTable::of_toml("a.toml", "[slurm]\npartitions = \"gpu\"\n").unwrap_err();
        assert!(format!("{wrong:?}").contains("line 2: unknown field `partitions`"), "{wrong:?}");
    }
}
