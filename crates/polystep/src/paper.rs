//! The paper's numbers, read from `paper/*.csv`: the one place where they stand.

/// The paper's estimates of one problem space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeEstimate {
    /// Unsimplified polynomials.
    pub equations: f64,
    /// Simplified ones.
    pub endpoints: f64,
}

/// Table "colide": the size of a problem space; none for a space that the paper does not have.
pub fn size_estimate(config: &str, vars: usize) -> Option<SizeEstimate> {
    let table = polystep_record::paper::csv("colide")?;
    let vars = vars.to_string();
    let row = table.lines().map(|line| line.split(',').collect::<Vec<_>>()).find(|r| r[0] == vars && r[1] == config)?;
    Some(SizeEstimate { equations: row[2].parse().ok()?, endpoints: row[3].parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use polystep_core::space::KEYS;

    #[test]
    fn every_space_of_the_paper_has_its_size() {
        assert!(KEYS.iter().all(|key| size_estimate(key, 1).is_some() && size_estimate(key, 2).is_some()));
        let terms = SizeEstimate { equations: 1.73e9, endpoints: 801e6 };
        assert_eq!(size_estimate("medium_terms", 2), Some(terms));
        assert_eq!(size_estimate("medium_terms", 3), None);
    }
}
