//! A report of made-up runs, to look at the page without training anything.
//!
//!     cargo run -p polystep-study --example synthetic_report -- FOLDER
//!
//! Writes `FOLDER/one.html` (a single run, tested on two spaces), `FOLDER/three.html` (three runs, two of them seeds of one
//! configuration), and one page for each of calculator, annotated and endpoint.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::path::PathBuf;

use fixture::Fake;
use polystep_core::Setting;
use polystep_study::report;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: synthetic_report FOLDER")?);
    let first = Fake { proofs: 400, also: &["large_coeff"], ..Fake::default() };
    let one = first.write(&folder.join("plain-coarse"));
    let second =
        Fake { seed: 2, clumsiness: 1.15, also: &[], ..first.clone() }.write(&folder.join("plain-coarse-seed2"));
    let fine = Fake { granularity: "fine", clumsiness: 0.5, also: &[], ..first }.write(&folder.join("plain-fine"));
    report::write(std::slice::from_ref(&one), &folder.join("one.html"))?;
    report::write(&[one, second, fine], &folder.join("three.html"))?;
    for (setting, notation) in
        [(Setting::Calculator, "prefix"), (Setting::Annotated, "infix"), (Setting::Endpoint, "infix")]
    {
        let fake = Fake { setting, notation, clumsiness: 3.0, ..Fake::default() };
        let run = fake.write(&folder.join(setting.name()));
        report::write(&[run], &folder.join(format!("{setting}.html")))?;
    }
    Ok(())
}
