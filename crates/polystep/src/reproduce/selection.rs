//! What a command works on: rows of tables, in one recipe, with one or more seeds.

use std::path::Path;

use polystep_study::plots::{self, Figure};
use polystep_study::tables::{Kind, Need, PaperRow, PaperTable, Recipe, TableView};
use polystep_study::{StoredRun, report};

use super::job::Job;
use super::results_folder::{ResultsFolder, write_whole};
use super::sizes;
use super::table_plan::TablePlans;
use crate::failure::Result;
use crate::output::{check_name, note};
use crate::table::counted;

/// Rows of tables, a recipe, and the seeds 1 to `seeds`.
pub struct Selection<'p> {
    /// The tables, each with its rows.
    pub tables: Vec<(&'p PaperTable, Vec<&'p PaperRow>)>,
    /// The recipe by which the runs are made.
    pub recipe: Recipe,
    /// How many seeds.
    pub seeds: u64,
}

impl Selection<'_> {
    /// What the rows need, seed by seed.
    pub fn needs(&self) -> impl Iterator<Item = (u64, Need)> {
        let rows = self.tables.iter().flat_map(|(_, rows)| rows.iter().copied());
        let of_seed =
            move |seed| rows.clone().flat_map(move |row| row.needs(self.recipe, seed)).map(move |n| (seed, n));
        (1..=self.seeds).flat_map(of_seed)
    }

    /// The runs that the rows need, each once, in the order of their owners' tables. Step-wise models come before one-shot
    /// models, and all runs of a seed before those of the next.
    pub fn jobs(&self, plans: &TablePlans) -> Vec<Job> {
        let mut wanted = Vec::new();
        for (seed, need) in self.needs() {
            let owner = plans.owner(&need.experiment).map(|(place, _)| place);
            wanted.push((seed, owner, need.endpoint, need.experiment));
        }
        wanted.sort_by_key(|(seed, owner, endpoint, _)| (*seed, *owner, *endpoint));
        let mut names = std::collections::BTreeSet::new();
        let experiments = wanted.into_iter().map(|(.., experiment)| experiment);
        experiments.filter(|e| names.insert(e.name())).map(|experiment| Job::new(experiment, plans)).collect()
    }

    /// The tables, ready to be shown.
    pub fn views(&self, results: &ResultsFolder) -> Result<Vec<TableView>> {
        let view = |(table, rows): &(&PaperTable, Vec<&PaperRow>)| match table.kind() {
            Kind::Sizes => sizes::view(results, table, rows),
            _ => Ok(TableView::of(table, rows, self.recipe, self.seeds, &results.records)),
        };
        self.tables.iter().map(view).collect()
    }

    /// `--page`: a page about the runs that have records, as `polystep report` writes it.
    pub fn write_page(&self, page: &Path, results: &ResultsFolder) -> Result<()> {
        let mut names: Vec<String> = Vec::new();
        for (_, need) in self.needs() {
            let name = need.experiment.name();
            if results.records.get(&name).is_some() && !names.contains(&name) {
                names.push(name);
            }
        }
        if names.is_empty() {
            note("there is no page yet: no run of these tables has a record");
            return Ok(());
        }
        check_name(page)?;
        let runs = names.iter().map(|name| StoredRun::open(&results.record(name)));
        let runs = runs.collect::<std::result::Result<Vec<_>, _>>()?;
        for file in report::write(&runs, page)? {
            note(file.display());
        }
        Ok(())
    }

    /// `--plots`: draws what was measured into SVG files of a folder. `probe` adds the figure of the arithmetic probe.
    pub fn draw(&self, folder: &Path, views: &[TableView], results: &ResultsFolder, probe: bool) -> Result<()> {
        let tables = self.tables.iter().zip(views).map(|((table, _), view)| (*table, view));
        let mut figures: Vec<Figure> = plots::of_tables(tables, self.seeds, &results.records);
        figures.extend(plots::arithmetic(&results.records).filter(|_| probe));
        for (name, chart) in &figures {
            write_whole(&folder.join(format!("{name}.svg")), &chart.file())?;
        }
        note(format_args!("{} in {}", counted(figures.len(), "figure"), folder.display()));
        Ok(())
    }
}
