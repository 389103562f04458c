//! The flags that several commands share, and how their values become what the core works with. The config file is read here,
//! so that every command refuses a bad one with the same sentence and the same caret.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use polystep_core::space::{KEYS, Retry, Space, SpaceError, Variables};
use polystep_core::{Granularity, Notation, Purpose, Setting, Style, Task, TermOrder, Writing};

use crate::failure::{Result, bad_input, bad_space};
use crate::interrupt;
use crate::run_config::read;

/// Which polynomials.
#[derive(Args, Clone, Debug)]
pub struct SpaceArgs {
    /// A configuration of the paper, one of its sub-tasks (medium_coeff/mul2), its polynomials with signs (medium_coeff/signed), or a TOML file with a [space] table
    #[arg(long, value_name = "KEY|FILE.toml", default_value = "medium_coeff")]
    pub config: String,
    /// What to draw again when a cap is exceeded [default: product]
    #[arg(long)]
    pub retry: Option<Named<Retry>>,
    /// How many variables take part in a polynomial [default: all]
    #[arg(long)]
    pub variables: Option<Named<Variables>>,
}

impl SpaceArgs {
    /// The space that the flags describe.
    pub fn space(&self) -> Result<Space> {
        let mut space = self.base()?;
        space.retry = self.retry.map_or(space.retry, |r| r.0);
        space.variables = self.variables.map_or(space.variables, |v| v.0);
        Ok(space)
    }

    fn base(&self) -> Result<Space> {
        let path = Path::new(&self.config);
        if path.extension().is_some_and(|e| e == "toml") {
            let text = read(path)?;
            let wrong = |e| bad_space(e, &self.config, &text);
            let space = Space::from_toml(&text).map_err(wrong)?;
            // Here, where the file is known; the number of variables is checked later.
            space.validate(1).map_err(wrong)?;
            return Ok(space);
        }
        Space::of_key(&self.config).map_err(|e| match e {
            SpaceError::Unknown { .. } => bad_input(format!("{e}; a space of one's own is a file that ends in .toml")),
            e => e.into(),
        })
    }
}

/// The keys of `--config all`, or the one space that was asked for.
pub fn spaces(args: &SpaceArgs) -> Result<Vec<Space>> {
    if args.config != "all" {
        return Ok(vec![args.space()?]);
    }
    KEYS.iter().map(|key| SpaceArgs { config: key.to_string(), ..args.clone() }.space()).collect()
}

/// How proofs are cut into steps and written down.
#[derive(Args, Clone, Debug)]
pub struct WritingArgs {
    #[arg(long, default_value = "plain", help = format!("What a step looks like: {}", Setting::listed()))]
    pub setting: Setting,
    /// How large a step is: coarse, fine, fine_counted, or switches of fine such as fac=term,sum=all
    #[arg(long, default_value = "coarse")]
    pub granularity: Granularity,
    #[arg(long, default_value = "infix", help = format!("How states are written: {}", Notation::listed()))]
    pub notation: Notation,
    /// The order of terms
    #[arg(long, default_value = "paper")]
    pub order: Named<TermOrder>,
    /// Write the coefficient 1 of unsimplified terms (1*x1^1)
    #[arg(long)]
    pub ones: bool,
}

impl WritingArgs {
    /// The flags as the core's bundle.
    pub fn writing(&self) -> Writing {
        let WritingArgs { setting, granularity, notation, order, ones } = *self;
        Writing { setting, granularity, notation, style: Style { order: order.0, ones } }
    }
}

/// Which proofs are made: of which polynomials, and how they are written.
#[derive(Args, Clone, Debug)]
pub struct TaskArgs {
    #[command(flatten)]
    space: SpaceArgs,
    /// How many variables
    #[arg(long, default_value_t = 1)]
    vars: usize,
    #[command(flatten)]
    writing: WritingArgs,
}

impl TaskArgs {
    /// The task that the flags describe.
    pub fn task(&self) -> Result<Task> {
        // A configuration with the arithmetic probe means all exercises; the probe has keys of its own beside these.
        let config = &self.space.config;
        let exercises =
            self.writing.setting == Setting::Arithmetic && !config.ends_with(".toml") && Space::of_key(config).is_err();
        let space = if exercises { Space::exercises(config)? } else { self.space.space()? };
        Ok(Task { space, vars: self.vars, writing: self.writing.writing() })
    }
}

/// `--minutes`: a time that can be measured.
pub fn positive_minutes(text: &str) -> std::result::Result<f64, &'static str> {
    let minutes = text.parse().map_err(|_| "it is a number of minutes")?;
    match Duration::try_from_secs_f64(60.0 * minutes) {
        Ok(time) if !time.is_zero() => Ok(minutes),
        _ if minutes > 0.0 => Err("it is longer than any clock can count"),
        _ => Err("it must be positive"),
    }
}

/// When `--minutes` from now are over; never, if that is later than clocks go.
pub fn deadline(minutes: Option<f64>) -> Option<Instant> {
    let time = Duration::try_from_secs_f64(60.0 * minutes?).ok()?;
    Instant::now().checked_add(time)
}

/// A number of things, of which there must be one.
pub fn at_least_one(text: &str) -> std::result::Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "it is a whole number, at least 1")
}

/// Threads that any machine may be asked for.
const FEW_THREADS: usize = 64;
/// Threads for each core that a machine may be asked for.
const THREADS_PER_CORE: usize = 4;

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// A number of threads that can be of use: every thread has memory of its own, which takes time to set up.
fn useful_threads(text: &str) -> std::result::Result<NonZeroUsize, String> {
    let threads = at_least_one(text)?;
    let most = FEW_THREADS.max(THREADS_PER_CORE * cores());
    if threads.get() <= most { Ok(threads) } else { Err(format!("on this machine it is at most {most}")) }
}

/// How many threads.
#[derive(Args, Clone, Debug)]
pub struct ThreadArgs {
    /// Number of threads; the result does not depend on it [default: all cores]
    #[arg(long, value_name = "N", value_parser = useful_threads)]
    pub threads: Option<NonZeroUsize>,
}

impl ThreadArgs {
    /// The number of threads.
    pub fn count(&self) -> usize {
        self.threads.map_or_else(cores, NonZeroUsize::get)
    }

    /// Starts the threads on which all parallel work of this process is done.
    pub fn start(&self) -> Result<()> {
        start_threads(self.count())
    }
}

/// Starts rayon's global pool; 0 threads stand for one per core. Left to itself rayon starts it at the first use, and panics where that fails.
pub fn start_threads(count: usize) -> Result<()> {
    Ok(rayon::ThreadPoolBuilder::new().num_threads(count).build_global().context("cannot start threads")?)
}

/// How a command that saves its work can be stopped.
#[derive(Args, Clone, Debug)]
pub struct StopArgs {
    /// Save and stop, as on Ctrl-C, when standard input comes to its end
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
}

impl StopArgs {
    /// Listens from now on.
    pub fn listen(&self) -> Result<()> {
        interrupt::listen()?;
        if self.until_stdin_closes { interrupt::when_stdin_closes() } else { Ok(()) }
    }
}

/// An enum of the core as a flag's value, under the name that it has in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named<T>(pub T);

macro_rules! named {
    ($type:ty: $($value:expr, $help:literal;)+) => {
        impl ValueEnum for Named<$type> {
            fn value_variants<'a>() -> &'a [Self] {
                &[$(Named($value)),+]
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                let told = [$(($value, $help)),+];
                let (value, help) = told.into_iter().find(|(value, _)| *value == self.0)?;
                Some(PossibleValue::new(value.name()).help(help))
            }
        }
    };
}

named! { Retry:
    Retry::Factor, "the factor that broke its product's cap";
    Retry::Product, "the product, with a new number of factors";
    Retry::Polynomial, "everything";
}

named! { Variables:
    Variables::All, "all of them";
    Variables::Uniform, "a random number of them, uniform in 1 to --vars";
}

named! { TermOrder:
    TermOrder::Paper, "degree, then fewer variables first, then x1, x2, ...";
    TermOrder::Grlex, "degree, then x1, x2, ...";
}

named! { Purpose:
    Purpose::Train, "training polynomials, guarded";
    Purpose::Valid, "the validation set: curves and choices";
    Purpose::Test, "the test set: 1000 proofs";
    Purpose::Beam, "the beam set: 5000 steps";
}
