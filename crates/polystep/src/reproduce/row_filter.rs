//! `--rows` picks rows of a table, by number (`1,4-6`) or by key (`config=large_coeff,notation=prefix`).
//!
//! Each number adds rows; without numbers all rows are taken. Each key then keeps only the rows with its value, or with one of its
//! values if it stands several times (`config=large_coeff,config=no_backtrack`).

use polystep_record::paper::KeyColumn;
use polystep_study::tables::{PaperRow, PaperTable};

use crate::failure::{Result, bad_input};

/// Which rows of a table are wanted.
#[derive(Clone, Debug, Default)]
pub struct RowFilter {
    numbers: Vec<(usize, usize)>,
    keys: Vec<(String, String)>,
}

impl RowFilter {
    /// Reads the flag.
    pub fn parse(text: &str) -> Result<RowFilter> {
        let mut rows = RowFilter::default();
        for part in text.split(',').map(str::trim) {
            match part.split_once('=') {
                Some((key, value)) => rows.keys.push((key.trim().into(), value.trim().into())),
                None => {
                    let (from, to) = part.split_once('-').unwrap_or((part, part));
                    let (Ok(from), Ok(to)) = (from.trim().parse(), to.trim().parse()) else {
                        let help = "write numbers (1,4-6) or keys (config=large_coeff,notation=prefix)";
                        return Err(bad_input(format!("--rows {text}: `{part}` is neither; {help}")));
                    };
                    rows.numbers.push((from, to));
                }
            }
        }
        Ok(rows)
    }

    /// The rows of a table that match; an error if there are none.
    pub fn of<'t>(&self, table: &'t PaperTable) -> Result<Vec<&'t PaperRow>> {
        let names: Vec<&str> = table.keys().map(KeyColumn::name).collect();
        if let Some((key, _)) = self.keys.iter().find(|(key, _)| !names.contains(&key.as_str())) {
            let names = names.join(", ");
            return Err(bad_input(format!("--rows: {} has no key `{key}`; its keys are {names}", table.name)));
        }
        let wanted = |row: &&PaperRow| {
            let number = self.numbers.is_empty() || self.numbers.iter().any(|(a, b)| (*a..=*b).contains(&row.number));
            let has = |(key, value): &&(String, String)| row.text(key) == Some(value);
            number && self.keys.iter().all(|(key, _)| self.keys.iter().filter(|(k, _)| k == key).any(|pair| has(&pair)))
        };
        let rows: Vec<&PaperRow> = table.rows.iter().filter(wanted).collect();
        if rows.is_empty() {
            return Err(bad_input(format!("--rows matches none of the {} rows of {}", table.rows.len(), table.name)));
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(table: &str, rows: &str) -> Vec<usize> {
        let table = PaperTable::named(table).unwrap();
        RowFilter::parse(rows).unwrap().of(&table).unwrap().iter().map(|r| r.number).collect()
    }

    #[test]
    fn rows_by_number_and_by_key() {
        assert_eq!(numbers("var1coarsefull", "1,4-6"), [1, 4, 5, 6]);
        assert_eq!(numbers("var1coarsefull", "config=large_coeff,notation=prefix"), [11, 12]);
        assert_eq!(numbers("var1coarsefull", "9-12, granularity=fine"), [10, 12]);
        assert_eq!(numbers("OODcoeff", "train_config=small_coeff"), [1, 2, 3]);
        assert_eq!(numbers("var1coarsefull", "config=large_coeff,config=medium_coeff,notation=prefix"), [7, 8, 11, 12]);
    }

    #[test]
    fn what_is_no_row_is_refused() {
        let table = PaperTable::named("colide").unwrap();
        let refused = |rows: &str| RowFilter::parse(rows).and_then(|r| r.of(&table).map(|_| ())).is_err();
        assert!(refused("x") && refused("13") && refused("notation=prefix") && refused("config=huge") && refused(""));
        assert!(!refused("12"));
    }
}
