//! A campaign, `--campaign FILE.toml`: rows of several tables in an order, with their recipes, seeds and number of runs at a time, made
//! by one command.
//!
//! Stages that follow each other with the same number of runs at a time share one queue. So the GPU does not wait for the last run of
//! a stage before it begins the next.

use std::path::{Path, PathBuf};
use std::time::Instant;

use polystep_record::LeaseWatch;
use serde::Deserialize;

use super::job::{Folders, Job};
use super::job_queue::Summary;
use super::pace::Pace;
use super::results_folder::ResultsFolder;
use super::row_filter::RowFilter;
use super::selection::Selection;
use super::table_plan::TablePlans;
use super::{Args, show};
use crate::failure::{Result, bad_input, bad_toml};
use crate::run_config::read;
use crate::say;
use crate::slots::SlotArgs;
use polystep_study::tables::Recipe;

/// The file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Campaign {
    /// Plans of tables of one's own, relative to the campaign's file.
    #[serde(default)]
    plans: Vec<PathBuf>,
    /// The stages, in order.
    stage: Vec<StageKeys>,
}

/// `[[stage]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StageKeys {
    /// What it is, for people.
    name: String,
    /// Names of tables.
    tables: Vec<String>,
    /// Rows of these tables, as `--rows` picks them; all if not given.
    rows: Option<String>,
    /// The recipe.
    #[serde(default = "fast")]
    recipe: Recipe,
    /// Seeds from 1 to this.
    #[serde(default = "one")]
    seeds: u64,
    /// Runs at a time on each GPU; those of the command if not given.
    jobs: Option<u8>,
}

fn fast() -> Recipe {
    Recipe::Fast
}

fn one() -> u64 {
    1
}

/// A stage with its rows and runs.
struct Stage<'p> {
    name: String,
    at_a_time: Option<u8>,
    selection: Selection<'p>,
    jobs: Vec<Job>,
}

impl Campaign {
    /// Reads a campaign.
    pub fn read(path: &Path) -> Result<Campaign> {
        let (name, text) = (path.display().to_string(), read(path)?);
        let wrong = |e: toml::de::Error| bad_toml(&name, &text, Some(e.span().unwrap_or(0..0)), e.message());
        let mut campaign: Campaign = toml::from_str(&text).map_err(wrong)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        campaign.plans.iter_mut().for_each(|plan| *plan = folder.join(&*plan));
        if let Some(stage) = campaign.stage.iter().find(|s| s.jobs == Some(0) || !(1..=1000).contains(&s.seeds)) {
            return Err(bad_input(format!("{name}: stage \"{}\": jobs and seeds begin at 1", stage.name)));
        }
        Ok(campaign)
    }

    /// The plans that it brings.
    pub fn plans(&self) -> &[PathBuf] {
        &self.plans
    }

    /// The stages. A run that several of them need belongs to the first.
    fn stages<'p>(&self, plans: &'p TablePlans) -> Result<Vec<Stage<'p>>> {
        let mut known = std::collections::BTreeSet::new();
        let stage = |keys: &StageKeys| {
            let filter = keys.rows.as_deref().map(RowFilter::parse).transpose()?.unwrap_or_default();
            let tables = keys.tables.iter().map(|name| {
                let (table, _) = plans.named(name)?;
                Ok((table, filter.of(table)?))
            });
            let tables = tables.collect::<Result<_>>()?;
            let selection = Selection { tables, recipe: keys.recipe, seeds: keys.seeds };
            let mut jobs = selection.jobs(plans);
            jobs.retain(|job| known.insert(job.name.clone()));
            // A bad plan is refused now, not after hours of training.
            jobs.iter().try_for_each(|job| plans.config(&job.experiment).map(drop))?;
            Ok(Stage { name: keys.name.clone(), at_a_time: keys.jobs, selection, jobs })
        };
        self.stage.iter().map(stage).collect()
    }
}

impl Args {
    /// Makes a campaign, or shows what it would make.
    pub(super) fn run_campaign(
        &self,
        campaign: &Campaign,
        plans: &TablePlans,
        folders: &Folders,
        results: &mut ResultsFolder,
        deadline: Option<Instant>,
    ) -> Result<()> {
        let stages = campaign.stages(plans)?;
        let pace = |at_a_time: Option<u8>, results: &ResultsFolder| -> Result<_> {
            let slots = SlotArgs { jobs: at_a_time.unwrap_or(self.slots.jobs), ..self.slots.clone() }.slots()?;
            let pace = Pace::of(&slots, self.threads.count(), plans, &results.records);
            Ok((slots, pace))
        };
        if self.dry_run {
            for stage in &stages {
                let open = folders.open_jobs(stage.jobs.clone(), &results.records)?;
                say!(
                    "\n{}: {} of {} runs to be made, recipe {}",
                    stage.name,
                    open.len(),
                    stage.jobs.len(),
                    stage.selection.recipe
                )?;
                show::dry_run(plans, folders, results, &pace(stage.at_a_time, results)?.1, &open)?;
            }
            return Ok(());
        }
        let mps = self.start_mps()?;
        let mut summary = Summary::default();
        let made = stages.chunk_by(|a, b| a.at_a_time == b.at_a_time).try_for_each(|group| -> Result<()> {
            let (slots, pace) = pace(group[0].at_a_time, results)?;
            let jobs: Vec<Job> = group.iter().flat_map(|stage| stage.jobs.clone()).collect();
            if !self.slurm.task {
                LeaseWatch::clear(folders.claims_on_done(&jobs, &results.records))?;
            }
            let open = folders.open_jobs(jobs, &results.records)?;
            let runner = self.runner(plans, folders, &pace, slots, deadline, mps.as_ref());
            summary.add(runner.work(open, results)?);
            Ok(())
        });
        // Also after an interrupt: the ledgers of the last runs may be missing.
        let has = |recipe: &Recipe| stages.iter().any(|stage| stage.selection.recipe == *recipe);
        [Recipe::Fast, Recipe::Paper].iter().filter(|&r| has(r)).try_for_each(|&r| results.update_all_ledgers(r))?;
        made?;
        self.tell_left(&summary);
        summary.into_result()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The repository's campaign: what is left of the paper's tables, in the order in which it is to be made.
    #[test]
    fn the_repositorys_campaign_is_the_rest_of_the_tables() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("reproduce/campaign.toml");
        let campaign = Campaign::read(&path).unwrap_or_else(|e| panic!("{e:?}"));
        let plans = TablePlans::read(campaign.plans()).unwrap_or_else(|e| panic!("{e:?}"));
        let stages = campaign.stages(&plans).unwrap_or_else(|e| panic!("{e:?}"));
        let runs: Vec<(&str, usize)> = stages.iter().map(|stage| (stage.name.as_str(), stage.jobs.len())).collect();
        let expected = [
            ("1 fine steps with two variables", 12),
            ("2 calculator", 8),
            ("3 annotated", 36),
            ("4 curricula", 24),
            ("4 plain runs of the same budget", 12),
            ("5 tuned", 8),
            ("fine steps, two more readings", 4),
            ("two variables under the paper's guard", 6),
            ("6 controls: out of distribution", 12),
            ("6 controls: no_backtrack", 1),
            ("6 controls: no_backtrack, C2", 1),
            ("7 seeds: plain", 4),
            ("7 seeds: C2", 4),
        ];
        assert_eq!(runs, expected);
        for job in stages.iter().flat_map(|stage| &stage.jobs) {
            let config = plans.config(&job.experiment).unwrap_or_else(|e| panic!("{e:?}"));
            // One budget for curricula and for the plain runs beside them, and sub-tasks as inside the target.
            let curriculum = config.curriculum.as_ref();
            assert!(curriculum.is_none_or(|c| c.inside), "{}", job.name);
            if job.experiment.recipe == Recipe::Fast
                && job.name.contains("-coarse-")
                && config.train.recipe == Recipe::Fast
            {
                assert_eq!(config.train.examples, Some(7_000_000), "{}", job.name);
            }
        }
    }

    #[test]
    fn a_bad_campaign_is_refused_in_one_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("campaign.toml");
        let refused = |text: &str| {
            std::fs::write(&file, text).unwrap();
            format!(
                "{:?}",
                Campaign::read(&file).and_then(|c| c.stages(&TablePlans::read::<&Path>(&[])?).map(drop)).unwrap_err()
            )
        };
        assert!(refused("[[stage]]\nname = \"a\"\n").contains("tables"));
        assert!(refused("[[stage]]\nname = \"a\"\ntables = [\"none\"]\n").contains("no table `none`"));
        assert!(refused("[[stage]]\nname = \"a\"\ntables = [\"OODcoeff\"]\nseeds = 0\n").contains("begin at 1"));
        assert!(
            refused("[[stage]]\nname = \"a\"\ntables = [\"OODcoeff\"]\nrows = \"99\"\n")
                .contains("matches none of the")
        );
    }
}
